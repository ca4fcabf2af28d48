"""Translate with every cell of a set: all sentences, those of one shard, or by putting the shards together."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from entropy_valley.decoding import translations
    from entropy_valley.decoding.job import How

    how, testsets = How.of(job.how, job.threads), job.input.testsets
    if shard := job.output.get("shard"):
        translations.write_shard(job.params, how, testsets, shard)
    else:
        translations.write(job.params, how, testsets, job.output.rows, job.input.shards)
