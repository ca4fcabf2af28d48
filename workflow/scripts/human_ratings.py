"""Check filled forms cell by cell, and write what they say of the systems."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from entropy_valley import files, provenance, run
from entropy_valley.errors import InputError
from entropy_valley.human_evaluation import pack as packs
from entropy_valley.human_evaluation.intake import read_forms
from entropy_valley.human_evaluation.pack import Pack
from entropy_valley.human_evaluation.ratings import unblinded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--pack", type=Path, required=True)
    parser.add_argument("--mapping", type=Path, required=True)
    parser.add_argument("--forms", type=Path, nargs="*", default=[])
    parser.add_argument("--folder", required=True, help="where filled forms are to be put")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    pack = Pack.read(options.pack)
    if not options.forms:
        remedy = (
            f"Make the forms by `snakemake packs`, have them filled in, and put them there: {pack.direction}.A.xlsx."
        )
        raise InputError(options.folder, f"has no filled form of {pack.direction}", remedy)
    inputs = [options.pack, options.mapping, *options.forms]
    with provenance.made("human_ratings", options.spec, inputs, [options.out]):
        found = read_forms(options.forms, pack, options.spec["annotators"])
        behind = packs.read_mapping(options.mapping, pack)
        for annotator, ratings in found.items():
            part = "" if len(ratings) == len(pack.rows) else ": the form is partial"
            print(f"{annotator} rated {len(ratings)} of {len(pack.rows)} sentences{part}", file=sys.stderr)
        files.write_jsonl(options.out, [row for ratings in found.values() for row in unblinded(ratings, behind)])


if __name__ == "__main__":
    run.script(main)
