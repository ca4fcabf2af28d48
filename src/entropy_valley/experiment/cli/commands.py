"""The command line: how each command is called, and the commands that are a few lines.

What a command needs is imported when it runs: the help is there at once, and `translate` and `check --installation` do
without the workflow's packages.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONFIGFILES = "config files; each overrides those before it, and all override config.yaml, of this folder if it has one"
FILTERS = ("backbone", "direction", "testset", "method")  # of the cells of an audit
LISTED = 40  # differences that `verify` prints, unless all are wanted
BATCH = 64  # lines that `translate` reads at once
FILE_FIRST = "Write the file to translate before the options."


def add(commands: Any) -> None:
    # In the order in which a user comes to them.
    parser = _command(commands, "schema", "print the JSON schema of config.yaml: every key")
    parser.set_defaults(command=_schema)

    parser = _command(commands, "check", "say whether the jobs of a config will run on this machine, and how fast")
    _add_configfile(parser)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: the one of the config")
    processes = "of a training; default: those of the config"
    parser.add_argument("--processes", type=_count, metavar="N", help=processes)
    installation = "look at torch's build and the driver alone"
    parser.add_argument("--installation", nargs="?", const="", metavar="BUILD", help=installation)
    thorough = "also: bits in batches, bfloat16 beside float32, COMET, speed, and a training that is killed"
    parser.add_argument("--thorough", action="store_true", help=thorough)
    out = "of the table that --thorough writes; default: results/check.md"
    parser.add_argument("--out", type=Path, default=Path("results/check.md"), metavar="FILE", help=out)
    parser.set_defaults(command=_check)

    parser = _command(
        commands, "plan", "say what is left to run of a config, why, and what it will take, as snakemake --dry-run does"
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="files or target rules; default: all of the config"
    )
    _add_configfile(parser)
    parser.set_defaults(command=_plan)

    parser = _command(commands, "audit", "say which cells are done, stale or missing, and why")
    _add_configfile(parser)
    parser.add_argument("--cells", action="store_true", help="also list the cells")
    states = "list the cells of these states only: done, stale, missing"
    parser.add_argument("--state", nargs="+", default=[], metavar="STATE", help=states)
    for column in FILTERS:
        parser.add_argument(f"--{column}", nargs="+", default=[], metavar="NAME", help=f"only cells of a {column}")
    snakefile = "another workflow, which may have this one as a module; default: Snakefile"
    parser.add_argument("--snakefile", metavar="FILE", help=snakefile)
    parser.add_argument("--check", action="store_true", help="end with status 1 unless all of these cells are done")
    parser.set_defaults(command=_of_module("audit"))

    parser = _command(commands, "show", "print tables")
    parser.add_argument("tables", nargs="+", metavar="TABLE", help="its .csv or .md file")
    parser.set_defaults(command=_show)

    parser = commands.add_parser(
        "verify",
        help="say whether the tables of a folder of results follow from its texts",
        description="Check the files of a folder of results, score its texts again, and make every table, figure and "
        "page again. Ends with status 1 where something differs.",
    )
    parser.add_argument("results", type=Path, help="the folder of results, such as results")
    parser.add_argument("--comet", type=Path, metavar="FILE", help="a COMET checkpoint, .ckpt or its folder")
    again = "also decode N sentences of each run again, on this machine"
    parser.add_argument("--translate", type=_count, metavar="N", help=again)
    parser.add_argument("--device", help="cpu, cuda or cuda:N; default: a GPU where there is one")
    own = "import the classes of your own that the config names, from this folder: their code is executed"
    parser.add_argument("--own-classes", action="store_true", help=own)
    parser.add_argument("--all", action="store_true", help=f"list all differences, not only {LISTED}")
    parser.set_defaults(command=_of_module("verify"))

    _add_translate(commands)

    export = "write an adapter for PEFT on the model class of its authors, with a model card for the hub"
    parser = _command(commands, "export", export)
    parser.add_argument("adapter", type=Path, help="an adapter folder, from training or from PEFT")
    parser.add_argument("out", type=Path, help="a new folder")
    layout = "module names of the authors' class, or of the stock transformers class (ours)"
    parser.add_argument("--layout", choices=("released", "stock"), default="released", help=layout)
    parser.add_argument("--family", help="family of the backbone; only for an adapter without adapter.json")
    parser.set_defaults(command=_export)

    parser = _command(commands, "mt-metrics-eval", "write the finished cells as mt-metrics-eval reads them")
    parser.add_argument("out", type=Path, help="a new folder")
    _add_configfile(parser)
    parser.set_defaults(command=_mt_metrics_eval)


def _add_translate(commands: Any) -> None:
    parser = commands.add_parser(
        "translate",
        usage="entropy-valley translate [FILE] [options]",
        help="translate the lines of a file or of stdin with a trained adapter",
        description="Translate a file or stdin, one sentence a line, to stdout. Options that are not given come from "
        "the config: then the translations are those of the workflow.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="before the options; default: stdin")
    _add_configfile(parser)
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--direction", metavar="NAME", help="such as en-zh; may be left out where there is only one")
    released = "with the adapter of the paper's authors for this direction (config/released.yaml), in any folder"
    direction.add_argument("--released", metavar="DIRECTION", help=released)
    tiny = "with LLaDA-tiny, the demo's model, which comes with this package (en-zh, zh-en, en-de), in any folder"
    direction.add_argument("--tiny", metavar="DIRECTION", help=tiny)
    parser.add_argument("--yes", action="store_true", help="agree to downloads of 1 GB and more")
    parser.add_argument("--backbone", metavar="NAME", help="default: the one of the main tables")
    parser.add_argument("--seed", type=_count, metavar="N", help="the training run; default: the first one")
    parser.add_argument("--adapter", type=Path, metavar="FOLDER", help="default: the one of the config")
    parser.add_argument("--prompt", metavar="TEXT", help="with {src} where the source goes")
    lengths = "length methods of the config, or module:Class of your own; default: ev"
    parser.add_argument("--length", nargs="+", default=["ev"], metavar="METHOD", help=lengths)
    parser.add_argument("--ratios", nargs="+", type=_ratio, metavar="R", help="the grid of these methods, or a ratio")
    parser.add_argument(
        "--order", metavar="NAME", help="reveal order, also module:Class; default: the one of the main tables"
    )
    parser.add_argument("--steps", type=_count, metavar="T", help="denoising steps; default: as the main tables")
    parser.add_argument("--jsonl", action="store_true", help="one JSON object for each line and method")
    problems = "at a line that cannot be translated, such as one that is too long; default: skip it"
    parser.add_argument("--on-error", choices=("skip", "stop"), default="skip", help=problems)
    batch = f"lines at once; default: {BATCH}"
    parser.add_argument("--batch", type=_count, default=BATCH, metavar="N", help=batch)
    parser.add_argument("--no-hints", action="store_true", help="do not name lines that the model may not know")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: the one of the config")
    parser.add_argument("--threads", type=_count, default=1, metavar="N", help="of a CPU; default: 1")
    parser.set_defaults(command=_of_module("translate"))


def _command(commands: Any, name: str, says: str) -> argparse.ArgumentParser:
    """A command whose own help begins with what the list of all commands says of it."""
    return commands.add_parser(name, help=says, description=f"{says[0].upper()}{says[1:]}.")


def _add_configfile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help=CONFIGFILES)


def _count(text: str) -> int:
    """A number of 1 or more, as the type of an argument."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def _ratio(text: str) -> float:
    """A number, as the type of an argument."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number. {FILE_FIRST}") from None


def _of_module(name: str) -> Callable[[argparse.Namespace], None]:
    """The command that has a module of its own, with a function of the same name."""
    return lambda arguments: getattr(importlib.import_module(f"entropy_valley.experiment.cli.{name}"), name)(arguments)


def _plan(arguments: argparse.Namespace) -> None:
    import snakemake  # noqa: F401 - where it is missing, the error says what to install

    from entropy_valley.experiment.cli import configs
    from entropy_valley.experiment.runs.jobs import require_snakefile

    configs.experiment(arguments.configfile)  # its errors name the file that is wrong also where Snakemake's do not
    require_snakefile("run `snakemake --dry-run --snakefile FILE`")
    named = ["--configfile", *arguments.configfile] if arguments.configfile else []
    command = [sys.executable, "-m", "snakemake", "--dry-run", *named, "--", *arguments.targets]
    # In a session of its own: Ctrl-C ends this process, which ends that one, in one line.
    sys.exit(subprocess.run(command, check=False, start_new_session=True).returncode)


def _schema(arguments: argparse.Namespace) -> None:
    from entropy_valley.experiment.config.load import INSTALLED

    print((INSTALLED / "config/schema.json").read_text(encoding="utf-8"), end="")


def _show(arguments: argparse.Namespace) -> None:
    from entropy_valley.experiment.tables import terminal

    for table in arguments.tables:
        terminal.show(table)


def _check(arguments: argparse.Namespace) -> None:
    from entropy_valley.experiment import checking
    from entropy_valley.experiment.checking import checks, subject

    if arguments.installation is not None:
        checks.require_passed(checks.report(checks.installation(arguments.installation)))
        return
    from entropy_valley.experiment.cli import configs

    whole = subject.of(configs.experiment(arguments.configfile))
    for name in ("device", "processes"):
        whole[name] = getattr(arguments, name) or whole[name]
    lines = checks.report(checking.everything(subject.Subject(**whole), arguments.thorough))
    if arguments.thorough:
        checks.write_table(lines, whole["device"], arguments.out)
    checks.require_passed(lines)


def _export(arguments: argparse.Namespace) -> None:
    from entropy_valley.model import adapters, card

    adapters.export(arguments.adapter, arguments.out, arguments.layout, arguments.family)
    card.write_card(arguments.out, arguments.layout)


def _mt_metrics_eval(arguments: argparse.Namespace) -> None:
    from entropy_valley.experiment.cli import configs
    from entropy_valley.experiment.tables import mt_metrics_eval

    print(*mt_metrics_eval.export(configs.experiment(arguments.configfile), arguments.out), sep="\n")
