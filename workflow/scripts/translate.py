"""Run a run's model: translate with every cell of a set, read canvases for figures, or time one cell.

A set is translated whole, as one of several shards, or by putting the shards together.

Rules: translate, shard, merge, diagnose, latency.
"""

from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from entropy_valley.translation import diagnostics, latency, translations
    from entropy_valley.translation.job import Execution

    execution, rule = Execution(**{**job.execution, "threads": job.threads}), job.rule
    if rule == "diagnose":
        diagnostics.write(job.params, execution, job.input.testsets, job.output[0])
    elif rule == "latency":
        # One thread, whatever the job reserves: threads that wait for each other measure the rest of the machine.
        alone = Execution(**{**job.execution, "threads": 1})
        latency.write(job.params, alone, job.input.testset, job.output[0])
    elif rule == "shard":
        translations.write_shard(job.params, execution, job.input.testsets, job.output.shard)
    else:
        translations.write(job.params, execution, job.input.testsets, job.output.rows, job.input.get("shards", []))
