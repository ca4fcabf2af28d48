"""Download a data set of the Hugging Face hub, unless it is there, and keep which commit it is."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, folders, provenance, run
from entropy_valley.corpus import dataset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--folder", type=Path, required=True, help="where the data set is, or goes")
    parser.add_argument("--out", type=Path, required=True, help="output: what it is")
    options = parser.parse_args()
    spec, folder = options.spec, options.folder
    key = "the `folder` of its sources"
    folders.make_once(folder, lambda work: dataset.fetch(spec["repository"], spec["revision"], work, key))
    found = dataset.require_origin(folder, spec["repository"], spec["revision"])
    provenance.require_same_commit(options.out, found)
    with provenance.made("fetch_dataset", spec, [], [options.out]):
        files.write_json(options.out, found)


if __name__ == "__main__":
    run.script(main)
