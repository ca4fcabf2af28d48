"""`entropy-valley plan`."""

from __future__ import annotations

import argparse
from typing import Any

from entropy_valley.cli import configs
from entropy_valley.differences import differences
from entropy_valley.experiment.loading import merge
from entropy_valley.reporting import against, forecast


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "plan", help="say what is left to run of a config, and what it will take: hours, GPU-hours, disk, downloads"
    )
    configs.add(parser)
    parser.add_argument(
        "--config", nargs="+", metavar="FILE", help="say what changes with these files over those above, and its cost"
    )
    parser.add_argument("--gpus", nargs="+", type=_count, default=[], metavar="N", help="how long it takes on N GPUs")
    parser.add_argument("--cores", nargs="+", type=_count, default=[], metavar="N", help="the same of a CPU's cores")
    parser.add_argument("--cells", action="store_true", help="with --config: one line for each cell that changes")
    parser.set_defaults(command=_plan)


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def _plan(arguments: argparse.Namespace) -> None:
    files, further = arguments.configfile, arguments.config
    experiment = configs.experiment(files)
    slots = arguments.gpus if experiment.device == "cuda" else arguments.cores
    if not further:
        forecast.report(experiment, configs.paths(files), slots)
        return
    others = [*files, *further]
    changed, keys = configs.experiment(others), differences(merge(configs.paths(files)), merge(configs.paths(others)))
    print(*against.lines(experiment, changed, keys), sep="\n")
    forecast.report_change(experiment, changed, slots, cells=arguments.cells)
