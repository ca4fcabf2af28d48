"""``entropy-valley``: what a user asks of an experiment without running it."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import errors
from entropy_valley.config import load_files


def main() -> None:
    errors.run(_main)


def _main() -> None:
    parser = argparse.ArgumentParser(prog="entropy-valley", description=__doc__)
    commands = parser.add_subparsers(required=True)
    audit = commands.add_parser("audit", help="list every cell of the matrix, done or missing")
    audit.add_argument("--out", help="also write the cells as tab-separated values")
    audit.set_defaults(command=_audit)
    schema = commands.add_parser("schema", help="print the JSON schema of config.yaml")
    schema.set_defaults(command=_schema)
    show = commands.add_parser("show", help="print a finished table")
    show.add_argument("table", help="its .csv or .md file")
    show.set_defaults(command=_show)
    export = commands.add_parser("export", help="write an adapter for PEFT on its authors' model class")
    export.add_argument("adapter", type=Path, help="a folder that training or PEFT wrote")
    export.add_argument("out", type=Path, help="a new folder")
    export.add_argument(
        "--layout",
        choices=("released", "stock"),
        default="released",
        help="the module names of the authors' class, or of the stock transformers class, which are ours",
    )
    export.add_argument("--family", help="of the backbone; only for an adapter without adapter.json")
    export.set_defaults(command=_export)
    for command in (audit,):
        command.add_argument(
            "--configfile",
            nargs="+",
            default=[],
            metavar="FILE",
            help="config files, each laid over those before it, and over config.yaml where the command is run",
        )
    arguments = parser.parse_args()
    arguments.command(arguments)


def _audit(arguments: argparse.Namespace) -> None:
    from entropy_valley import audit

    base = [path for path in ("config.yaml",) if Path(path).exists()]
    audit.report(load_files(dict.fromkeys([*base, *arguments.configfile])), arguments.out)


def _schema(arguments: argparse.Namespace) -> None:
    from entropy_valley.config.schema import json_schema

    print(json_schema(), end="")


def _show(arguments: argparse.Namespace) -> None:
    from entropy_valley.reporting import terminal

    terminal.show(arguments.table)


def _export(arguments: argparse.Namespace) -> None:
    from entropy_valley.backbone import adapters

    adapters.export(arguments.adapter, arguments.out, arguments.layout, arguments.family)
