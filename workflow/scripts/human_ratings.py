"""Check filled forms cell by cell, and write what they say of the systems."""

from entropy_valley.human_evaluation import jobs
from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    read = job.input
    jobs.write_ratings(job.params, job.how["folder"], read.pack, read.mapping, read.forms, job.output[0])
