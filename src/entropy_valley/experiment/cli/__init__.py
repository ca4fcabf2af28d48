"""Inspect an experiment and its results, translate, or export an adapter."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import io
import os
import sys
from typing import Any

from entropy_valley import errors

# What the library itself imports.
CORE = {"torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "numpy", "scipy", "pydantic", "yaml"}
CORE |= {"filelock", "peft", "tqdm"}


def main() -> None:
    prepare_streams()
    with errors.in_one_line():
        try:
            arguments = parser().parse_args(sys.argv[1:] or ["--help"])
            arguments.command(arguments)
        except ModuleNotFoundError as error:
            if error.name in CORE:
                problem, remedy = "not installed, and the library needs it", "`dependencies` in pyproject.toml has all"
                raise errors.InputError(error.name, problem, f"pip install {error.name}; {remedy}.") from None
            if importlib.util.find_spec("snakemake"):
                raise
            problem = "this command needs the packages of the workflow, which are not installed"
            remedy = "In a clone of the repository: pip install '.[workflow]'"
            raise errors.InputError(error.name, problem, remedy) from None


def prepare_streams() -> None:
    """Let output go nowhere where its stream was closed, as by ``>&-``, and escape what the terminal cannot show.

    For a closed stream Python has None, and prints errors among the results.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def parser() -> argparse.ArgumentParser:
    """What ``entropy-valley`` understands."""
    from entropy_valley.experiment.cli import commands  # here, so that Ctrl-C is one line meanwhile, too

    whole = argparse.ArgumentParser(prog="entropy-valley", description=__doc__)
    whole.add_argument("--version", action=_Version, nargs=0, help="print the version")
    subparsers = whole.add_subparsers(required=True, title="commands", metavar="COMMAND", parser_class=_Exact)
    commands.add(subparsers)
    return whole


class _Exact(argparse.ArgumentParser):
    """An option has one name: `--config` is not `--configfile`, and means something else to Snakemake."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)


class _Version(argparse.Action):
    """Looks the version up only where it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        print(f"{parser.prog} {importlib.metadata.version('entropy-valley')}")
        parser.exit()
