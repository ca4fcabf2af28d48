"""Count tokens by the tokenizers of backbones: of a test set's sentences, or the length ratios of training pairs.
No model is loaded.

Rules: tokens, length_ratios.
"""

from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake, uses_torch=False) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, results
    from entropy_valley.lengths.statistics import length_ratios
    from entropy_valley.model.checkpoint import load_tokenizer
    from entropy_valley.model.families import find_family
    from entropy_valley.model.prompt import PLACE, Prompt
    from entropy_valley.progress import progress

    out, folders = job.output[0], {name: Path(folder) for name, folder in job.execution.items()}
    if job.rule == "length_ratios":
        pairs = files.read_jsonl(job.input.pairs, ("source", "target"))
        ratios = {}
        for name, family in job.spec["tokenizers"].items():
            shown = progress(pairs, description=f"{name} tokens", unit="pair")
            ratios[name] = length_ratios(shown, load_tokenizer(folders[name], find_family(family)))
        files.write_json(out, ratios)
    else:
        testset = job.input.testset
        with results.made("tokens", job.params, job.input, [out]):
            tokenizer = load_tokenizer(folders["backbone"], find_family(job.spec["family"]))
            tokens = Prompt(PLACE, tokenizer).tokens
            rows = [
                {"id": row["id"], **{f"{side}_tokens": len(tokens(row[side])) for side in ("source", "target")}}
                for row in files.read_jsonl(testset, ("id", "source", "target"))
            ]
            files.write_jsonl(out, rows)
