"""Write the paired tests of every run: significance.py SPEC --out TESTS.csv."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import errors
from entropy_valley.analysis.comparisons import compare
from entropy_valley.analysis.signatures import provenance
from entropy_valley.analysis.spec import Spec
from entropy_valley.reporting.significance import printed
from entropy_valley.reporting.tables import write_csv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", help="JSON, or @file.json")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    spec = Spec.parse(arguments.spec, ("metric_name", "resamples", "seed"))
    provenance(
        spec.cells, {"comet22": spec.metric_name}
    )  # only numbers of one metric, data set and decoder may be subtracted
    write_csv(arguments.out, printed(compare(spec.cells, resamples=spec.resamples, seed=spec.seed)))


if __name__ == "__main__":
    errors.run(main)
