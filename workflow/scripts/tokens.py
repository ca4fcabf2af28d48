"""Count the tokens of a test set's sentences, as a backbone's tokenizer splits them; no model is loaded."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, provenance, run
from entropy_valley.backbone.checkpoint import checkpoint_digest
from entropy_valley.backbone.families import find_family
from entropy_valley.backbone.prompt import PLACE, Prompt
from entropy_valley.engine.identity import read_tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--testset", type=Path, required=True)
    parser.add_argument("--backbone", type=Path, required=True, help="a checkpoint folder")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    read = {options.backbone: checkpoint_digest(options.backbone)}
    with provenance.made("tokens", options.spec, [options.testset], [options.out], known=read):
        tokens = Prompt(PLACE, read_tokenizer(options.backbone, find_family(options.spec["family"]))).tokens
        rows = [
            {"id": row["id"], **{f"{side}_tokens": len(tokens(row[side])) for side in ("source", "target")}}
            for row in files.read_jsonl(options.testset, ("id", "source", "target"))
        ]
        files.write_jsonl(options.out, rows)


if __name__ == "__main__":
    run.script(main)
