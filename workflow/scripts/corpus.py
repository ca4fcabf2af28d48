"""Write the training and dev pairs of one direction, and a report."""

from __future__ import annotations

import argparse

from entropy_valley import files, provenance, run
from entropy_valley.corpus import build
from entropy_valley.demo.source import SOURCES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--report", required=True)
    arguments = parser.parse_args()
    outputs = (arguments.train, arguments.dev, arguments.report)
    with provenance.made("corpus", arguments.spec, build.own_files(arguments.spec), outputs):
        train, dev, report = build.corpus(arguments.spec, SOURCES)
        files.write_jsonl(arguments.train, train)
        files.write_jsonl(arguments.dev, dev)
        files.write_json(arguments.report, report)


if __name__ == "__main__":
    run.script(main)
