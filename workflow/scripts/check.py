"""Check the machine that a job gets, as its user does by `entropy-valley check`."""

from entropy_valley.experiment.runs.job import check_machine, job_of

with job_of(snakemake) as job:  # noqa: F821
    check_machine(job.execution["subject"], job.output[0])
