"""The command line: how each command is called, and the commands that are a few lines.

What a command needs is imported when it runs: the help is there at once, and `translate` and `check --installation` do
without the workflow's packages.
"""

import argparse
import functools
import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONFIGFILES = "config files; each overrides those before it, and all override config.yaml, of this folder if it has one"
BATCH = 64  # lines that `translate` reads at once
FILE_FIRST = "Write the file to translate before the options."


def add(commands: Any) -> None:
    # In the order in which a user comes to them.
    _command(commands, "schema", _schema, "print the JSON schema of config.yaml: every key")

    says = "say whether the jobs of a config will run on this machine, and how fast"
    option = _command(commands, "check", _check, says, configfile=True).add_argument
    option("--device", choices=("cpu", "cuda"), help="default: the one of the config")
    option("--processes", type=_count, metavar="N", help="of a training; default: those of the config")
    option("--installation", nargs="?", const="", metavar="BUILD", help="look at torch's build and the driver alone")
    thorough = "also: bits in batches, bfloat16 beside float32, COMET, speed, and a training that is killed"
    option("--thorough", action="store_true", help=thorough)

    says = "say what is left to run of a config, why, and what it will take, as snakemake --dry-run does"
    option = _command(commands, "plan", _plan, says, configfile=True).add_argument
    option("targets", nargs="*", metavar="TARGET", help="files or target rules; default: all of the config")

    says = "say which cells are done, stale or missing, and why"
    option = _command(commands, "audit", _of_module("audit"), says, configfile=True).add_argument
    snakefile = "another workflow, which may have this one as a module; default: Snakefile"
    option("--snakefile", metavar="FILE", help=snakefile)
    option("--check", action="store_true", help="end with status 1 unless all cells are done")

    option = _command(commands, "show", _show, "print the numbers of tables").add_argument
    option("tables", nargs="+", metavar="TABLE", help="its .csv file, or another of its files")

    says = "say whether the tables of a folder of results follow from its texts"
    description = (
        "Check the files of a folder of results, score its texts again, and make every table, figure and page again. "
        "Ends with status 1 where something differs."
    )
    option = _command(commands, "verify", _of_module("verify"), says, description).add_argument
    option("results", type=Path, help="the folder of results, such as results")
    option("--comet", type=Path, metavar="FILE", help="a COMET checkpoint, .ckpt or its folder")
    again = "also decode N sentences of each run again, on this machine"
    option("--translate", type=_count, metavar="N", help=again)
    own = "import the classes of your own that the config names, from this folder: their code is executed"
    option("--own-classes", action="store_true", help=own)

    _add_translate(commands)

    says = "write an adapter for PEFT on the model class of its authors, with a model card for the hub"
    option = _command(commands, "export", _export, says).add_argument
    option("adapter", type=Path, help="an adapter folder, from training or from PEFT")
    option("out", type=Path, help="a new folder")
    layout = "module names of the authors' class, or of the stock transformers class (ours)"
    option("--layout", choices=("released", "stock"), default="released", help=layout)
    option("--family", help="family of the backbone; only for an adapter without adapter.json")


def _add_translate(commands: Any) -> None:
    description = (
        "Translate a file or stdin, one sentence a line, to stdout. Options that are not given come from the config: "
        "then the translations are those of the workflow."
    )
    says = "translate the lines of a file or of stdin with a trained adapter"
    parser = _command(commands, "translate", _of_module("translate"), says, description, configfile=True)
    parser.usage, option = "entropy-valley translate [FILE] [options]", parser.add_argument
    option("file", nargs="?", type=Path, metavar="FILE", help="before the options; default: stdin")
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--direction", metavar="NAME", help="such as en-zh; may be left out where there is only one")
    released = "with the adapter of the paper's authors for this direction (config/released.yaml), in any folder"
    direction.add_argument("--released", metavar="DIRECTION", help=released)
    tiny = "with LLaDA-tiny, which comes with this package, for short sentences (en-de, en-zh, zh-en), in any folder"
    direction.add_argument("--tiny", metavar="DIRECTION", help=tiny)
    option("--yes", action="store_true", help="agree to downloads of 1 GB and more")
    option("--backbone", metavar="NAME", help="default: the one of the main tables")
    option("--seed", type=_count, metavar="N", help="the training run; default: the first one")
    option("--adapter", type=Path, metavar="FOLDER", help="default: the one of the config")
    option("--prompt", metavar="TEXT", help="with {src} where the source goes")
    lengths = "length methods of the config, or module:Class of your own; default: ev"
    option("--length", nargs="+", default=["ev"], metavar="METHOD", help=lengths)
    option("--ratios", nargs="+", type=float, metavar="R", help="the grid of these methods, or a ratio")
    option("--order", metavar="NAME", help="reveal order, also module:Class; default: the one of the main tables")
    option("--steps", type=_count, metavar="T", help="denoising steps; default: as the main tables")
    option("--jsonl", action="store_true", help="one JSON object for each line and method")
    option("--batch", type=_count, default=BATCH, metavar="N", help=f"lines at once; default: {BATCH}")
    option("--no-hints", action="store_true", help="do not name lines that the model may not know")
    option("--device", choices=("cpu", "cuda"), help="default: the one of the config")
    option("--threads", type=_count, default=1, metavar="N", help="of a CPU; default: 1")


def _command(
    commands: Any,
    name: str,
    command: Callable[[argparse.Namespace], None],
    says: str,
    description: str = "",
    configfile: bool = False,
) -> argparse.ArgumentParser:
    """A command, what the list of all commands says of it, and with what its own help begins: the same unless another
    ``description`` is given. ``configfile``: it takes config files."""
    own = description or f"{says[0].upper()}{says[1:]}."
    parser: argparse.ArgumentParser = commands.add_parser(name, help=says, description=own)
    parser.set_defaults(command=command)
    if configfile:
        parser.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help=CONFIGFILES)
    return parser


def _count(text: str) -> int:
    """A number of 1 or more, as the type of an argument."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def _of_module(name: str) -> Callable[[argparse.Namespace], None]:
    """The command that has a module of its own, with a function of the same name."""
    return lambda arguments: getattr(importlib.import_module(f"entropy_valley.experiment.cli.{name}"), name)(arguments)


def _plan(arguments: argparse.Namespace) -> None:
    import snakemake  # noqa: F401 - where it is missing, the error says what to install

    from entropy_valley.experiment.cli import configs

    configs.experiment(arguments.configfile)  # its errors name the file that is wrong also where Snakemake's do not
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
        build = functools.partial(checks.torch_build, arguments.installation)
        checks.report(checks.run([("torch", build), ("GPUs", checks.gpus)]))
        return
    from entropy_valley.experiment.cli import configs

    whole = subject.of(configs.experiment(arguments.configfile))
    for name in ("device", "processes"):
        whole[name] = getattr(arguments, name) or whole[name]
    checks.report(checking.everything(subject.Subject(**whole), arguments.thorough))


def _export(arguments: argparse.Namespace) -> None:
    from entropy_valley.model import adapters
    from entropy_valley.training import card

    adapters.export(arguments.adapter, arguments.out, arguments.layout, arguments.family)
    card.write_card(arguments.out)
