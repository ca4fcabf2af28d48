"""Measure how long the training translations of a direction are for their sources, under each backbone's tokenizer."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, provenance, run
from entropy_valley.backbone.checkpoint import checkpoint_digest
from entropy_valley.backbone.families import find_family
from entropy_valley.backbone.length_ratios import length_ratios
from entropy_valley.engine.identity import read_tokenizer
from entropy_valley.progress import progress


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--pairs", type=Path, required=True, help="the training pairs")
    parser.add_argument("--backbone", action="append", required=True, help="NAME=FOLDER of a checkpoint")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    folders = {name: Path(folder) for name, _, folder in (given.partition("=") for given in options.backbone)}
    known = {folder: checkpoint_digest(folder) for folder in folders.values()}
    with provenance.made("length_ratios", options.spec, [options.pairs], [options.out], known=known):
        pairs = files.read_jsonl(options.pairs, ("source", "target"))
        found = {}
        for name, family in options.spec["tokenizers"].items():
            shown = progress(pairs, description=f"{name} tokens", unit="pair")
            found[name] = length_ratios(shown, read_tokenizer(folders[name], find_family(family)))
        files.write_json(options.out, found)


if __name__ == "__main__":
    run.script(main)
