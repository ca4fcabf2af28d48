"""Write the training and dev pairs of one direction, and a report."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from entropy_valley import files, provenance, run
from entropy_valley.corpus import build, dataset, shared
from entropy_valley.demo.source import SOURCES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--report", required=True)
    parser.add_argument(
        "--dataset", action="append", default=[], help="the manifest of a downloaded source; its record is an input"
    )
    parser.add_argument("--folder", help="where a downloaded source is")
    parser.add_argument("--rows", type=int, help="how many rows the source must have")
    parser.add_argument("--commits", type=Path, help="the folder that keeps which commit of a data set is read")
    parser.add_argument("--both-ways", action="store_true", help="draw for the reverse direction in the same pass")
    arguments = parser.parse_args()
    outputs = (arguments.train, arguments.dev, arguments.report)
    own = build.own_files(arguments.spec, "train", "dev", kinds=SOURCES)
    inputs = [*own, *arguments.dataset]
    made = provenance.made("corpus", arguments.spec, inputs, outputs)
    with dataset.commits_kept(arguments.commits), made as record, drawn(arguments) as found:
        train, dev, report, facts = found
        record.facts.update(facts)
        files.write_jsonl(arguments.train, train)
        files.write_jsonl(arguments.dev, dev)
        files.write_json(arguments.report, report)


def drawn(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[build.Corpus]:
    if arguments.both_ways:
        return shared.corpus(arguments.spec, SOURCES, Path(arguments.report), arguments.rows)
    return contextlib.nullcontext(build.corpus(arguments.spec, SOURCES, arguments.folder, arguments.rows))


if __name__ == "__main__":
    run.script(main)
