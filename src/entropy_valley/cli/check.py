"""`entropy-valley check`."""

from __future__ import annotations

import argparse
import itertools
import os
from typing import Any

from entropy_valley.cli import configs
from entropy_valley.runs import slurm
from entropy_valley.runs.audit import Audit
from entropy_valley.runs.inventory import Inventory
from entropy_valley.runs.plan import left


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "check", help="say whether the jobs of a config will run on this machine, and how fast"
    )
    configs.add(parser)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: the one of the config")
    parser.add_argument("--processes", type=int, metavar="N", help="of a training; default: those of the config")
    parser.add_argument(
        "--installation", nargs="?", const="", metavar="BUILD", help="look at torch, its build and the driver alone"
    )
    parser.add_argument(
        "--profile", metavar="NAME", help="ask SLURM whether it grants what the jobs of the config request"
    )
    parser.set_defaults(command=_check)


def _check(arguments: argparse.Namespace) -> None:
    from entropy_valley.checking import checks, line, needs, subject

    if arguments.installation is not None:
        checks.report(checks.installation(arguments.installation))
        return
    if arguments.profile is not None:
        checks.report(line.run(slurm.checks(configs.experiment(arguments.configfile), arguments.profile)))
        return
    given = {name: value for name in ("device", "processes") if (value := getattr(arguments, name)) is not None}
    experiment = configs.experiment(arguments.configfile)
    jobs, _ = left(Audit(Inventory(experiment)))
    here = line.run(needs.checks(experiment, jobs, os.cpu_count() or 1))
    checks.report(itertools.chain(here, checks.everything(subject.Subject(**{**subject.of(experiment), **given}))))
