"""Fill in the form of a pack as a simulated annotator does: to try the whole way, not to learn anything of outputs."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import provenance, run
from entropy_valley.demo.annotators import ratings
from entropy_valley.human_evaluation import forms
from entropy_valley.human_evaluation.pack import Pack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("pack", type=Path)
    parser.add_argument("--annotator", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with provenance.made("human_simulated", options.spec, [options.pack], [options.out]):
        pack = Pack.read(options.pack)
        forms.write_csv(options.out, pack, ratings(pack, options.annotator, options.spec["seed"]))


if __name__ == "__main__":
    run.script(main)
