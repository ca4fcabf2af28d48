"""`entropy-valley plan`."""

from __future__ import annotations

import argparse
from typing import Any

from entropy_valley.cli import configs
from entropy_valley.errors import InputError, question
from entropy_valley.runs import plan
from entropy_valley.runs.audit import Audit
from entropy_valley.runs.inventory import Inventory


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "plan", help="say what is left to run of a config, and what it will take: hours, GPU-hours, disk, downloads"
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="files to make; default: all of the config")
    configs.add(parser)
    parser.set_defaults(command=_plan)


def _plan(arguments: argparse.Namespace) -> None:
    experiment = configs.experiment(arguments.configfile)
    inventory = Inventory(experiment)
    for target in arguments.targets:
        if inventory.at(target) is None:
            paths = [path for job in inventory.all() for path in job.outputs]
            raise InputError(target, "no result, table or figure of this config", question(target, paths))
    planned = plan.Plan.of(Audit(inventory), arguments.targets or None)
    print(plan.report(planned, configs.paths(arguments.configfile)))
