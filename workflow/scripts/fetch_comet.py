"""Download a COMET checkpoint and the tokenizer of its encoder, unless they are there."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, provenance
    from entropy_valley.scoring import comet_checkpoint

    (out,) = job.output
    how = job.how
    found = comet_checkpoint.fetched(
        **job.spec, folder=Path(how["folder"]), metric=how["metric"], agreed=how["confirm"]
    )
    with provenance.made("fetch_comet", job.params, [], [out]):
        files.write_json(out, found)
