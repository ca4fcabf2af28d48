"""Write the sentences of one test set for one direction."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, provenance, run
from entropy_valley.corpus import build, dataset
from entropy_valley.demo.source import SOURCES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument(
        "--dataset", action="append", default=[], help="the manifest of a downloaded source; its record is an input"
    )
    parser.add_argument("--folder", help="where a downloaded source is")
    parser.add_argument("--rows", type=int, help="how many rows the source must have")
    parser.add_argument("--commits", type=Path, help="the folder that keeps which commit of a data set is read")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    own = build.own_files(arguments.spec, "test", kinds=SOURCES)
    inputs = [*own, *arguments.dataset]
    made = provenance.made("testset", arguments.spec, inputs, [arguments.out])
    with dataset.commits_kept(arguments.commits), made as record:
        files.write_jsonl(arguments.out, build.testset(arguments.spec, SOURCES, arguments.folder, arguments.rows))
        record.facts.update(build.origin(arguments.spec, "test", SOURCES, arguments.folder))


if __name__ == "__main__":
    run.script(main)
