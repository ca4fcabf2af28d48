"""Inspect an experiment and its results, translate, or export an adapter."""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import importlib.util
from typing import Any

from entropy_valley import errors

# What the library itself imports.
CORE = ("torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "numpy", "scipy", "pydantic", "yaml")
CORE += ("filelock", "packaging", "tqdm")


def main() -> None:
    with errors.in_one_line():
        try:
            arguments = parser().parse_args()
            arguments.command(arguments)
        except ModuleNotFoundError as error:
            if error.name in CORE:
                problem, remedy = "not installed, and the library needs it", "`dependencies` in pyproject.toml has all"
                raise errors.InputError(error.name, problem, f"pip install entropy-valley; {remedy}.") from None
            if importlib.util.find_spec("snakemake"):
                raise
            problem = "this command needs the packages of the workflow, which are not installed"
            raise errors.InputError(error.name, problem, "pip install 'entropy-valley[workflow]'") from None


def parser() -> argparse.ArgumentParser:
    """What ``entropy-valley`` understands."""
    # It takes a second, in which Ctrl-C is to be one line, too.
    from entropy_valley.cli import commands, plan, translate, verify

    whole = argparse.ArgumentParser(prog="entropy-valley", description=__doc__)
    whole.add_argument("--version", action=_Version, nargs=0, help="print the version")
    # An option has one name: `--config` is not `--configfile`, and means something else to Snakemake.
    exact = functools.partial(argparse.ArgumentParser, allow_abbrev=False)
    subparsers = whole.add_subparsers(required=True, title="commands", metavar="COMMAND", parser_class=exact)
    for module in (plan, verify, translate, commands):
        module.add(subparsers)
    return whole


class _Version(argparse.Action):
    """Looks the version up only where it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        print(f"{parser.prog} {importlib.metadata.version('entropy-valley')}")
        parser.exit()
