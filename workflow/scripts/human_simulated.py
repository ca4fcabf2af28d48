"""Fill in the form of a pack as a simulated annotator does: to try the whole way, not to learn anything of outputs."""

from pathlib import Path

from entropy_valley import provenance
from entropy_valley.demo.annotators import ratings
from entropy_valley.human_evaluation import forms
from entropy_valley.human_evaluation.pack import Pack
from entropy_valley.runs.job import job_of

with job_of(snakemake) as job, provenance.made("human_simulated", job.params, job.input, job.output):  # noqa: F821
    pack = Pack.read(Path(job.input[0]))
    filled = ratings(pack, snakemake.wildcards.annotator, job.spec["seed"])  # noqa: F821
    forms.write_csv(Path(job.output[0]), pack, filled)
