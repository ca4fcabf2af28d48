"""Choose the sentences of a pack, hide which system is which, and write the guidelines for its annotators.

Rule: human_pack.
"""

from pathlib import Path

from entropy_valley import files
from entropy_valley.experiment.config import load_merged, matrix, schema
from entropy_valley.experiment.human_evaluation import forms, pack
from entropy_valley.experiment.runs.job import job_of
from entropy_valley.experiment.tables.report import Names, Results, data_of

with job_of(snakemake) as job:  # noqa: F821
    experiment = load_merged(snakemake.config)  # noqa: F821
    results = Results(Path(job.output.pack).parents[2])
    direction, settings = snakemake.wildcards.direction, experiment.human_evaluation  # noqa: F821
    metric = schema.metrics_of(experiment.scoring)[0]
    cells = matrix.evaluated_cells(experiment, direction)
    data = data_of(results, Names(experiment, cells), ("hypothesis", "source", "target"))
    first, second = (data.of([cell]).sentences for cell in cells)
    sentences = pack.side_by_side(first, second, metric.name)
    chosen, behind = pack.make(sentences, direction, settings.sentences.model_dump(), settings.seed)
    chosen.write(job.output.pack)
    pack.write_mapping(job.output.mapping, chosen, metric.name, behind)
    for language, path in zip(pack.LANGUAGES, job.output.guidelines, strict=True):
        files.write_text(path, forms.guidelines(chosen, language))
