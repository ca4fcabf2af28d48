"""Score the translations of a set by every metric of the config: per sentence and per cell, with signatures.

Rule: score.
"""

from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from entropy_valley.scoring import sets

    read = job.input
    comet = [path for path in read.comet if path.endswith(".json")]
    sets.write(job.params, job.execution, read.testsets, read.translations, job.output.rows, job.threads, comet)
