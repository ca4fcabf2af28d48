"""`entropy-valley plan`."""

from __future__ import annotations

import argparse
from typing import Any

from entropy_valley.cli import configs
from entropy_valley.reporting import forecast


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "plan", help="say what is left to run of a config, and what it will take: hours, GPU-hours, disk, downloads"
    )
    configs.add(parser)
    parser.add_argument(
        "--config", nargs="+", metavar="FILE", help="say what changes with these files over those above, and its cost"
    )
    parser.add_argument(
        "--gpus", nargs="+", type=configs.count, default=[], metavar="N", help="how long it takes on N GPUs"
    )
    parser.add_argument(
        "--cores", nargs="+", type=configs.count, default=[], metavar="N", help="the same of a CPU's cores"
    )
    parser.add_argument("--cells", action="store_true", help="with --config: one line for each cell that changes")
    parser.set_defaults(command=_plan)


def _plan(arguments: argparse.Namespace) -> None:
    files, slots = arguments.configfile, {"cuda": arguments.gpus, "cpu": arguments.cores}
    if arguments.config:
        experiment, changed = configs.compare(files, arguments.config)
        forecast.report_change(experiment, changed, slots[experiment.device], cells=arguments.cells)
    else:
        experiment = configs.experiment(files)
        forecast.report(experiment, configs.paths(files), slots[experiment.device])
