"""Check the machine that a job gets, as its user does by `entropy-valley check`."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from entropy_valley import checking
    from entropy_valley.checking import checks
    from entropy_valley.checking.subject import Subject

    checks.require_passed(checks.report(checking.everything(Subject(**job.execution["subject"]))))
