"""Time one cell on a few sentences of its test set, alone; only what its length method is fitted to is stored."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from entropy_valley.decoding import latency
    from entropy_valley.decoding.job import How

    # One thread, whatever the job reserves: threads that wait for each other measure the rest of the machine.
    latency.write(job.params, How.of(job.how, threads=1), job.input.testsets[0], job.output[0], job.how["minutes"])
