"""Check filled forms cell by cell, and write what they say of the systems.

Rule: human_ratings.
"""

from entropy_valley.experiment.human_evaluation.intake import write_ratings
from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    read = job.input
    write_ratings(job.params, job.execution["folder"], read.pack, read.mapping, read.forms, job.output[0])
