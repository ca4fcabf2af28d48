"""Write the cross-backbone table: crossbb_table.py SPEC --tex T --csv C --md M."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import errors
from entropy_valley.analysis.scores import collect
from entropy_valley.analysis.spec import Spec
from entropy_valley.analysis.summary import summarise
from entropy_valley.reporting import notes, tables
from entropy_valley.reporting.crossbb_table import crossbb_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", help="JSON, or @file.json")
    for suffix in ("tex", "csv", "md"):
        parser.add_argument(f"--{suffix}", type=Path, required=True)
    arguments = parser.parse_args()
    spec = Spec.parse(arguments.spec, ("metric_name",))
    summary = summarise(collect(spec.cells))
    table = crossbb_table(spec, summary, notes.provenance(spec))
    tables.write(table, summary, tex=arguments.tex, csv=arguments.csv, md=arguments.md)


if __name__ == "__main__":
    errors.run(main)
