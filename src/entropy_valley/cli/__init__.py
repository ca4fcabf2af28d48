"""Inspect an experiment and its results, or export an adapter."""

from __future__ import annotations

import argparse

from entropy_valley import errors
from entropy_valley.cli import audit, check, export, show

COMMANDS = (audit, check, show, export)  # each adds its own, in this order


def main() -> None:
    errors.run(_main)


def _main() -> None:
    parser = argparse.ArgumentParser(prog="entropy-valley", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for command in COMMANDS:
        command.add(commands)
    arguments = parser.parse_args()
    arguments.command(arguments)
