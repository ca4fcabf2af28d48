"""Make the page of a test set's sentences."""

from entropy_valley.reporting.pages import sentences
from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    sentences.make(job.params, job.how, job.output[0])
