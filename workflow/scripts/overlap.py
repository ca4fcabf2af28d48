"""Count the sentences of a test set that occur in the training pairs of its direction."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    import sys

    from entropy_valley import files, provenance
    from entropy_valley.data.build import overlap

    (out,) = job.output
    with provenance.made("overlap", job.params, job.input, [out]):
        test, *train = (files.read_jsonl(path, ("source", "target")) for path in job.input)
        counts = overlap(test, *train)
        files.write_json(out, counts)
        if known := counts.get("training", {}).get("source"):
            where = f"{job.input[0]}: {known:,} of {len(test):,} sources occur in the training pairs"
            print(f"warning: {where}: scores there say little of new text", file=sys.stderr)
