"""`entropy-valley check`."""

from __future__ import annotations

import argparse
from typing import Any

from entropy_valley import files
from entropy_valley.cli import configs
from entropy_valley.config import paths
from entropy_valley.runs import slurm
from entropy_valley.runs.job import passed_check


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
    from entropy_valley import checking
    from entropy_valley.checking import checks, subject

    if arguments.installation is not None:
        checks.report(checks.installation(arguments.installation))
        return
    experiment = configs.experiment(arguments.configfile)
    if arguments.profile is not None:
        checks.report(checks.run(slurm.checks(experiment, arguments.configfile, arguments.profile)))
        return
    given = {name: value for name in ("device", "processes") if (value := getattr(arguments, name)) is not None}
    whole = {**subject.of(experiment), **given}
    lines = checks.report(checking.everything(subject.Subject(**whole)))
    if whole["device"] == "cuda":  # for the jobs with as many GPUs, which need no other check, and for the plan
        passed = passed_check(paths.checks_folder(experiment), whole)
        files.write_text(passed, "".join(f"{line}\n" for line in lines))
