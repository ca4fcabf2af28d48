"""Choose the sentences of a pack, hide which system is which, and write the guidelines for its annotators.

Rule: human_pack.
"""

from pathlib import Path

from entropy_valley import files, tables
from entropy_valley.config import load_merged, matrix, schema
from entropy_valley.human_evaluation import forms
from entropy_valley.human_evaluation.pack import LANGUAGES, write_pack
from entropy_valley.results import made
from entropy_valley.runs.job import job_of
from entropy_valley.tables.reader import Results

with job_of(snakemake) as job, made("human_pack", job.params, job.input, job.output):  # noqa: F821
    experiment = load_merged(snakemake.config, further=tables.problems)  # noqa: F821
    results = Results(experiment, Path(job.output.pack).parents[2], job.input)
    cells = matrix.evaluated_cells(experiment, snakemake.wildcards.direction)  # noqa: F821
    metric, settings = schema.metrics_of(experiment.scoring)[0], experiment.human_evaluation
    pack = write_pack(results, cells, metric, settings, job.output.pack, job.output.mapping)
    for language, path in zip(LANGUAGES, job.output.guidelines, strict=True):
        files.write_text(path, forms.guidelines(pack, language))
