"""`entropy-valley audit`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from entropy_valley.cli import configs
from entropy_valley.experiment.findings import STATES
from entropy_valley.reporting import audit, repair


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "audit", help="say which cells of the matrix are done, stale, damaged, failed or missing, and why"
    )
    configs.add(parser)
    parser.add_argument("--out", help="also write the cells as tab-separated values")
    parser.add_argument("--page", metavar="FILE", help="also write the cells as a page for a browser")
    parser.add_argument("--cells", action="store_true", help="also list the cells")
    parser.add_argument("--state", nargs="+", default=[], choices=STATES, help="list the cells of these states only")
    for column in ("backbone", "direction", "testset", "method"):
        parser.add_argument(
            f"--{column}", nargs="+", default=[], metavar="NAME", help=f"look at cells of a {column} only"
        )
    parser.add_argument(
        "--verify", action="store_true", help="read also the files that seem unchanged since the last audit"
    )
    parser.add_argument(
        "--repair",
        action="store_true",
        help="list all that is damaged, and the files to delete so that it is made again",
    )
    parser.add_argument("--yes", action="store_true", help="with --repair: delete them")
    parser.add_argument(
        "--against",
        nargs="+",
        metavar="FILE",
        help="config files laid over those above: say instead what changes with them",
    )
    parser.add_argument(
        "--check", action="store_true", help="end with status 1 unless all is done, and nothing damaged"
    )
    parser.set_defaults(command=_audit)


def _audit(arguments: argparse.Namespace) -> None:
    if arguments.against:
        configs.compare(arguments.configfile, arguments.against)
        return
    only = {name: getattr(arguments, name) for name in ("backbone", "direction", "testset", "method", "state")}
    listed, experiment = arguments.cells or bool(arguments.state), configs.experiment(arguments.configfile)
    audit.require_known(experiment, only)
    if arguments.repair:
        return repair.report(experiment, arguments.yes, only, arguments.verify)
    options = {"page": arguments.page, "cells": listed, "verify": arguments.verify}
    whole = audit.report(experiment, arguments.out, only=only, **options)
    if arguments.check and not whole:
        sys.exit(1)
