"""Inspect an experiment and its results, translate, or export an adapter."""

from __future__ import annotations

import argparse
import importlib.metadata
from typing import Any

from entropy_valley import errors
from entropy_valley.cli import audit, check, export, plan, show, translate

COMMANDS = (plan, audit, check, show, translate, export)  # each adds its own, in this order


def main() -> None:
    errors.run(_main)


def parser() -> argparse.ArgumentParser:
    """What ``entropy-valley`` understands."""
    found = argparse.ArgumentParser(prog="entropy-valley", description=__doc__)
    found.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = found.add_subparsers(required=True)
    for command in COMMANDS:
        command.add(commands)
    return found


def _main() -> None:
    arguments = parser().parse_args()
    arguments.command(arguments)


class _Version(argparse.Action):
    """Looks the version up only where it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        print(f"{parser.prog} {importlib.metadata.version('entropy-valley')}")
        parser.exit()
