"""Count the tokens of a test set's sentences, as a backbone's tokenizer splits them; no model is loaded."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, provenance
    from entropy_valley.decoding.inputs import read_tokenizer
    from entropy_valley.model.checkpoint import checkpoint_digest
    from entropy_valley.model.families import find_family
    from entropy_valley.model.prompt import PLACE, Prompt

    (out,) = job.output
    backbone, testset = Path(job.how["backbone"]), job.input.testset
    with provenance.made("tokens", job.params, [testset], [out], known={backbone: checkpoint_digest(backbone)}):
        tokens = Prompt(PLACE, read_tokenizer(backbone, find_family(job.spec["family"]))).tokens
        rows = [
            {"id": row["id"], **{f"{side}_tokens": len(tokens(row[side])) for side in ("source", "target")}}
            for row in files.read_jsonl(testset, ("id", "source", "target"))
        ]
        files.write_jsonl(out, rows)
