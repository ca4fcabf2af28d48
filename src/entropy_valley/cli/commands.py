"""The commands that are a few lines: `check`, `schema`, `show`, `export` and `mt-metrics-eval`; and how `audit` is
called.

Their modules are imported when they run: `translate` and `check --installation` do without the workflow's packages.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.checking import PEERS, SHAPES, STEPS
from entropy_valley.cli import configs
from entropy_valley.config import paths
from entropy_valley.config.schema import json_schema
from entropy_valley.runs.job import passed_check

FILTERS = ("backbone", "direction", "testset", "method")  # of the cells of an audit


def add(commands: Any) -> None:
    parser = configs.command(
        commands, "check", "say whether the jobs of a config will run on this machine, and how fast"
    )
    configs.add(parser)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: the one of the config")
    processes = "of a training; default: those of the config"
    parser.add_argument("--processes", type=configs.count, metavar="N", help=processes)
    installation = "look at torch's build and the driver alone"
    parser.add_argument("--installation", nargs="?", const="", metavar="BUILD", help=installation)
    profile = "ask SLURM whether it grants what the jobs of the config request"
    parser.add_argument("--profile", metavar="NAME", help=profile)
    _add_thorough(parser)
    parser.set_defaults(command=_check)

    parser = configs.command(commands, "audit", "say which cells are done, stale or missing, and why")
    configs.add(parser)
    parser.add_argument("--cells", action="store_true", help="also list the cells")
    states = "list the cells of these states only: done, stale, missing"
    parser.add_argument("--state", nargs="+", default=[], metavar="STATE", help=states)
    for column in FILTERS:
        parser.add_argument(f"--{column}", nargs="+", default=[], metavar="NAME", help=f"only cells of a {column}")
    against = "say instead which keys, jobs and cells change if these config files are added"
    parser.add_argument("--against", nargs="+", metavar="FILE", help=against)
    snakefile = "another workflow, which may have this one as a module; default: Snakefile"
    parser.add_argument("--snakefile", metavar="FILE", help=snakefile)
    parser.add_argument("--check", action="store_true", help="end with status 1 unless all of these cells are done")
    parser.set_defaults(command=_audit)

    parser = configs.command(commands, "schema", "print the JSON schema of config.yaml: every key")
    parser.add_argument("--json", action="store_true", help="as JSON, which is also what it prints without this option")
    parser.set_defaults(command=_schema)

    parser = configs.command(commands, "show", "print tables")
    parser.add_argument("tables", nargs="+", metavar="TABLE", help="its .csv or .md file")
    parser.set_defaults(command=_show)

    export = "write an adapter for PEFT on the model class of its authors, with a model card for the hub"
    parser = configs.command(commands, "export", export)
    parser.add_argument("adapter", type=Path, help="an adapter folder, from training or from PEFT")
    parser.add_argument("out", type=Path, help="a new folder")
    layout = "module names of the authors' class, or of the stock transformers class (ours)"
    parser.add_argument("--layout", choices=("released", "stock"), default="released", help=layout)
    parser.add_argument("--family", help="family of the backbone; only for an adapter without adapter.json")
    parser.set_defaults(command=_export)

    parser = configs.command(commands, "mt-metrics-eval", "write the finished cells as mt-metrics-eval reads them")
    parser.add_argument("out", type=Path, help="a new folder")
    configs.add(parser)
    parser.set_defaults(command=_mt_metrics_eval)


def _add_thorough(parser: argparse.ArgumentParser) -> None:
    thorough = "test a GPU without a config: are its results correct, how fast is it, how much memory is used"
    parser.add_argument("--thorough", action="store_true", help=thorough)
    clone = "PYTHONPATH=src python -m entropy_valley check --thorough"
    missing = "What a machine lacks, such as DeepSpeed or COMET, is named and skipped. At the end it prints a table."
    group = parser.add_argument_group(
        "with --thorough", f"It also runs in a clone that is not installed: {clone}. {missing}"
    )
    shape = "of the model, which has random weights; default: llada-8b, or without a GPU tiny"
    group.add_argument("--shape", choices=SHAPES, help=shape)
    group.add_argument("--minutes", type=float, default=60, help="limit for all steps together; default: 60")
    group.add_argument("--only", nargs="+", choices=STEPS, metavar="STEP", help=f"of these: {', '.join(STEPS)}")
    pairs = "pairs in JSON Lines, with id, source and target: how certain a real model is by the length of the canvas"
    group.add_argument("--testset", type=Path, metavar="FILE", help=pairs)
    group.add_argument("--direction", default="en-zh", help="of these pairs; default: en-zh")
    peer = "time a public decoder, too, on the same canvases. FOLDER is your clone of it: its code is run. NAME: "
    peer += ", ".join(f"{name} ({repository})" for name, repository in PEERS.items())
    group.add_argument("--peer", nargs="+", default=[], metavar="NAME=FOLDER", help=peer)
    out = "of the table; default: results/check.md"
    group.add_argument("--out", type=Path, default=Path("results/check.md"), metavar="FILE", help=out)


def _audit(arguments: argparse.Namespace) -> None:
    from entropy_valley.cli.audit import audit

    audit(arguments)


def _schema(arguments: argparse.Namespace) -> None:
    from entropy_valley import tables

    print(json_schema(tables.known()), end="")


def _show(arguments: argparse.Namespace) -> None:
    from entropy_valley.tables import terminal

    for table in arguments.tables:
        terminal.show(table)


def _check(arguments: argparse.Namespace) -> None:
    from entropy_valley import checking
    from entropy_valley.checking import checks, subject

    if arguments.installation is not None:
        checks.report(checks.installation(arguments.installation))
        return
    if arguments.thorough:
        from entropy_valley.checking import thorough

        thorough.run(arguments)
    experiment = configs.experiment(arguments.configfile)
    if arguments.profile is not None:
        from entropy_valley.runs import slurm

        checks.report(checks.run(slurm.checks(experiment, arguments.configfile, arguments.profile)))
        return
    given = {name: value for name in ("device", "processes") if (value := getattr(arguments, name)) is not None}
    whole = {**subject.of(experiment), **given}
    lines = checks.report(checking.everything(subject.Subject(**whole)))
    if whole["device"] == "cuda":  # for the jobs with as many GPUs, which need no other check, and for the plan
        passed = passed_check(paths.checks_folder(experiment), whole)
        files.write_text(passed, "".join(f"{line}\n" for line in lines))


def _export(arguments: argparse.Namespace) -> None:
    from entropy_valley.model import adapters

    adapters.export(arguments.adapter, arguments.out, arguments.layout, arguments.family)
    adapters.write_card(arguments.out, arguments.layout)


def _mt_metrics_eval(arguments: argparse.Namespace) -> None:
    from entropy_valley.tables import mt_metrics_eval

    print(*mt_metrics_eval.export(configs.experiment(arguments.configfile), arguments.out), sep="\n")
