"""Write the sentences of one test set for one direction."""

from __future__ import annotations

import argparse
import json

from entropy_valley import errors, files
from entropy_valley.corpus import build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=json.loads)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    files.write_jsonl(arguments.out, build.testset(arguments.spec))


if __name__ == "__main__":
    errors.run(main)
