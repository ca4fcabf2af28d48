"""Count the sentences of a test set that occur in the training pairs of its direction."""

from __future__ import annotations

import argparse
import sys

from entropy_valley import files, provenance, run
from entropy_valley.corpus.overlap import overlap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--testset", required=True)
    parser.add_argument("--train", help="the training pairs; without them only the test set is looked at")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    inputs = [path for path in (arguments.testset, arguments.train) if path]
    with provenance.made("overlap", arguments.spec, inputs, [arguments.out]):
        test, *train = (files.read_jsonl(path, ("source", "target")) for path in inputs)
        found = overlap(test, *train)
        files.write_json(arguments.out, found)
        if known := found.get("training", {}).get("source"):
            where = f"{arguments.testset}: {known:,} of {len(test):,} sources occur in the training pairs"
            print(f"warning: {where}: scores there say little of new text", file=sys.stderr)


if __name__ == "__main__":
    run.script(main)
