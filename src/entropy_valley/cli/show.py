"""`entropy-valley schema` and `show`."""

from __future__ import annotations

from typing import Any

from entropy_valley import tables
from entropy_valley.config.schema import json_schema
from entropy_valley.tables import terminal


def add(commands: Any) -> None:
    parser = commands.add_parser("schema", help="print the JSON schema of config.yaml: every key")
    parser.add_argument("--json", action="store_true", help="as JSON, which is also what it prints without this option")
    parser.set_defaults(command=lambda arguments: print(json_schema(tables.known()), end=""))

    parser = commands.add_parser("show", help="print a table")
    parser.add_argument("table", help="its .csv or .md file")
    parser.set_defaults(command=lambda arguments: terminal.show(arguments.table))
