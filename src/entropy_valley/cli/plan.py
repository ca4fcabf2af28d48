"""`entropy-valley plan`: the answer of Snakemake's dry run, for any config and targets."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

from entropy_valley.cli import configs


def add(commands: Any) -> None:
    parser = configs.command(
        commands, "plan", "say what is left to run of a config, why, and what it will take, as snakemake --dry-run does"
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="files or target rules; default: all of the config"
    )
    configs.add(parser)
    parser.set_defaults(command=_plan)


def _plan(arguments: argparse.Namespace) -> None:
    import snakemake  # noqa: F401 - where it is missing, the error says what to install

    from entropy_valley.runs.jobs import require_snakefile

    configs.experiment(arguments.configfile)  # its errors name the file that is wrong also where Snakemake's do not
    require_snakefile("run `snakemake --dry-run --snakefile FILE`")
    named = ["--configfile", *arguments.configfile] if arguments.configfile else []
    command = [sys.executable, "-m", "snakemake", "--dry-run", *named, "--", *arguments.targets]
    # In a session of its own: Ctrl-C ends this process, which ends that one, in one line.
    sys.exit(subprocess.run(command, check=False, start_new_session=True).returncode)
