"""Make a table or a figure."""

from entropy_valley.reporting import reports
from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    reports.write(job.params, job.how, job.output)
