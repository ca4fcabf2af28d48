"""`--configfile`: the config that a command looks at."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley.experiment import Experiment, base_files, load_files
from entropy_valley.reporting import reports

HELP = "config files; each overrides those before it, and all override the config.yaml of this folder"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help=HELP)


def paths(configfiles: list[str]) -> list[Path]:
    """The config files of this folder, and above them those that are named."""
    base = [path for path in base_files() if path.exists()]
    return list(dict.fromkeys([*base, *map(Path, configfiles)]))


def experiment(configfiles: list[str]) -> Experiment:
    """The config of this folder and of the files that are named, checked."""
    return load_files(paths(configfiles), reports.problems)
