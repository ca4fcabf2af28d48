"""`entropy-valley schema`, `show` and `ledger`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from entropy_valley.experiment.schema import json_schema
from entropy_valley.reporting import reports, terminal, work_report


def add(commands: Any) -> None:
    parser = commands.add_parser("schema", help="print the JSON schema of config.yaml")
    parser.set_defaults(command=lambda arguments: print(json_schema(reports.known()), end=""))

    parser = commands.add_parser("show", help="print a table")
    parser.add_argument("table", help="its .csv or .md file")
    parser.set_defaults(command=lambda arguments: terminal.show(arguments.table))

    parser = commands.add_parser("ledger", help="add up what the jobs requested, took from the store, and computed")
    parser.add_argument("results", type=Path, nargs="?", default="results", help="a results folder (default: results)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the sums of each run as CSV")
    parser.set_defaults(command=lambda arguments: work_report.report(arguments.results, arguments.csv))
