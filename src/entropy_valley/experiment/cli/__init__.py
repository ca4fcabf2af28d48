"""Inspect an experiment and its results, translate, or export an adapter."""

import argparse
import functools
import importlib.metadata
import importlib.util
import io
import sys
from typing import Any

from entropy_valley import errors


def main() -> None:
    prepare_streams()
    with errors.in_one_line():
        try:
            arguments = parser().parse_args(sys.argv[1:] or ["--help"])
            arguments.command(arguments)
        except ModuleNotFoundError as error:
            if importlib.util.find_spec("snakemake"):
                raise
            problem = "not installed, and this command needs it"
            remedy = "In a clone of the repository: pip install '.[workflow]', or for `translate` alone: pip install ."
            raise errors.InputError(error.name, problem, remedy) from None


def prepare_streams() -> None:
    """Escape what the terminal cannot show."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def parser() -> argparse.ArgumentParser:
    """What ``entropy-valley`` understands."""
    from entropy_valley.experiment.cli import commands  # here, so that Ctrl-C is one line meanwhile, too

    whole = argparse.ArgumentParser(prog="entropy-valley", description=__doc__)
    version = f"%(prog)s {importlib.metadata.version('entropy-valley')}"
    whole.add_argument("--version", action="version", version=version, help="print the version")
    # An option has one name: `--config` is not `--configfile`, and means something else to Snakemake.
    exact: Any = functools.partial(argparse.ArgumentParser, allow_abbrev=False)
    subparsers = whole.add_subparsers(required=True, title="commands", metavar="COMMAND", parser_class=exact)
    commands.add(subparsers)
    return whole
