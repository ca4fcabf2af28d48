"""Choose the sentences of a pack, and hide which system is which."""

from entropy_valley.human_evaluation import jobs
from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    jobs.write_pack(job.params, job.how, job.input, job.output.pack, job.output.mapping)
