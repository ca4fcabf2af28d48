"""Measure how long the training translations of a direction are for their sources, under each backbone's tokenizer."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, provenance
    from entropy_valley.decoding.inputs import read_tokenizer
    from entropy_valley.model.checkpoint import checkpoint_digest
    from entropy_valley.model.families import find_family
    from entropy_valley.model.prompt import length_ratios
    from entropy_valley.progress import progress

    (out,) = job.output
    folders = {name: Path(folder) for name, folder in job.how.items()}
    known = {folder: checkpoint_digest(folder) for folder in folders.values()}
    with provenance.made("length_ratios", job.params, [job.input.pairs], [out], known=known):
        pairs = files.read_jsonl(job.input.pairs, ("source", "target"))
        ratios = {}
        for name, family in job.spec["tokenizers"].items():
            shown = progress(pairs, description=f"{name} tokens", unit="pair")
            ratios[name] = length_ratios(shown, read_tokenizer(folders[name], find_family(family)))
        files.write_json(out, ratios)
