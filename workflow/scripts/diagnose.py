"""Read a run's all-mask canvases around the reference's length, on a dense grid, and without the source."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from entropy_valley.decoding.job import How
    from entropy_valley.lengths import diagnostics

    diagnostics.write(job.params, How.of(job.how, job.threads), job.input.testsets, job.output[0])
