"""Inspect an experiment and its results, or export an adapter."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from entropy_valley import errors
from entropy_valley.differences import differences
from entropy_valley.experiment import Experiment, base_files, load_files
from entropy_valley.experiment.findings import DONE, STATES
from entropy_valley.experiment.loading import merge
from entropy_valley.experiment.schema import json_schema
from entropy_valley.reporting import against, audit, reports, terminal, work_report

CONFIGFILE = "config files; each overrides those before it, and all override the config.yaml of this folder"


def main() -> None:
    errors.run(_main)


def _main() -> None:
    parser = argparse.ArgumentParser(prog="entropy-valley", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for add in (_add_audit, _add_check, _add_schema, _add_show, _add_ledger, _add_export):
        add(commands)
    arguments = parser.parse_args()
    arguments.command(arguments)


def _add_audit(commands: Any) -> None:
    parser = commands.add_parser(
        "audit", help="say which cells of the matrix are done, stale, damaged, failed or missing, and why"
    )
    parser.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help=CONFIGFILE)
    parser.add_argument("--out", help="also write the cells as tab-separated values")
    parser.add_argument("--cells", action="store_true", help="also list the cells")
    parser.add_argument("--state", nargs="+", default=[], choices=STATES, help="list the cells of these states only")
    for column in ("backbone", "direction", "testset", "method"):
        parser.add_argument(
            f"--{column}", nargs="+", default=[], metavar="NAME", help=f"look at cells of a {column} only"
        )
    parser.add_argument("--verify", action="store_true", help="read all files and compare them with their digests")
    parser.add_argument(
        "--against", nargs="+", metavar="FILE", help="config files as above: say instead what changes with them"
    )
    parser.add_argument("--check", action="store_true", help="end with status 1 unless all cells are done")
    parser.set_defaults(command=_audit)


def _add_check(commands: Any) -> None:
    parser = commands.add_parser(
        "check", help="say whether the jobs of a config will run on this machine, and how fast"
    )
    parser.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help=CONFIGFILE)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: `device` of the config")
    parser.add_argument("--processes", type=int, metavar="N", help="of a training; default: `training.processes`")
    parser.add_argument(
        "--installation", nargs="?", const="", metavar="BUILD", help="look at torch, its build and the driver alone"
    )
    parser.set_defaults(command=_check)


def _add_schema(commands: Any) -> None:
    parser = commands.add_parser("schema", help="print the JSON schema of config.yaml")
    parser.set_defaults(command=lambda arguments: print(json_schema(reports.known()), end=""))


def _add_show(commands: Any) -> None:
    parser = commands.add_parser("show", help="print a table")
    parser.add_argument("table", help="its .csv or .md file")
    parser.set_defaults(command=lambda arguments: terminal.show(arguments.table))


def _add_ledger(commands: Any) -> None:
    parser = commands.add_parser("ledger", help="add up what the jobs requested, took from the store, and computed")
    parser.add_argument("results", type=Path, nargs="?", default="results", help="a results folder (default: results)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the sums of each run as CSV")
    parser.set_defaults(command=lambda arguments: work_report.report(arguments.results, arguments.csv))


def _add_export(commands: Any) -> None:
    parser = commands.add_parser("export", help="write an adapter for PEFT on the model class of its authors")
    parser.add_argument("adapter", type=Path, help="an adapter folder, from training or from PEFT")
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument(
        "--layout",
        choices=("released", "stock"),
        default="released",
        help="module names of the authors' class, or of the stock transformers class (ours)",
    )
    parser.add_argument("--family", help="family of the backbone; only for an adapter without adapter.json")
    parser.set_defaults(command=_export)


def _check(arguments: argparse.Namespace) -> None:
    from entropy_valley.checking import checks, subject

    if arguments.installation is not None:
        checks.report(checks.installation(arguments.installation))
        return
    given = {name: value for name in ("device", "processes") if (value := getattr(arguments, name)) is not None}
    experiment = load_files(_configs(arguments.configfile), reports.problems)
    checks.report(checks.everything(subject.Subject(**{**subject.of(experiment), **given})))


def _audit(arguments: argparse.Namespace) -> None:
    configs = _configs(arguments.configfile)
    experiment = load_files(configs, reports.problems)
    if arguments.against:
        return _compare(experiment, configs, _configs(arguments.against))
    only = {name: getattr(arguments, name) for name in ("backbone", "direction", "testset", "method", "state")}
    listed = arguments.cells or bool(arguments.state)
    states = audit.report(experiment, arguments.out, only=only, cells=listed, verify=arguments.verify)
    if arguments.check and any(one.state != DONE for one in states):
        sys.exit(1)


def _compare(experiment: Experiment, configs: list[Path], others: list[Path]) -> None:
    keys = differences(merge(configs), merge(others))
    print(*against.lines(experiment, load_files(others, reports.problems), keys), sep="\n")


def _configs(configfiles: list[str]) -> list[Path]:
    """The config files of this folder, and above them those that are named."""
    base = [path for path in base_files() if path.exists()]
    return list(dict.fromkeys([*base, *map(Path, configfiles)]))


def _export(arguments: argparse.Namespace) -> None:
    from entropy_valley.backbone import adapters

    adapters.export(arguments.adapter, arguments.out, arguments.layout, arguments.family)
