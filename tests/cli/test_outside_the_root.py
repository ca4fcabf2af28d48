"""The commands in a folder that is no root of the repository, and what an installation needs for that."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from entropy_valley.experiment import cli
from entropy_valley.experiment.cli import commands, configs
from entropy_valley.experiment.config import base_files
from entropy_valley.experiment.config.load import INSTALLED

ROOT = Path(__file__).parents[2]
WITHOUT = """
import builtins, sys

plain, ours = builtins.__import__, set()

def noted(name, *given, **named):
    if given and str((given[0] or {}).get("__name__")).startswith("entropy_valley"):
        ours.add(name.partition(".")[0])
    return plain(name, *given, **named)

builtins.__import__ = noted
from entropy_valley import Translator, tiny
from entropy_valley.experiment import cli

cli.parser().parse_args(["translate", "--tiny", "en-de"])
print(Translator.load(**tiny("en-de")).translate(["We are going home."])[0].text)
print(*ours, *{"torch._dynamo"} & sys.modules.keys())
"""


def of_workflow() -> set[str]:
    """The modules that only the workflow's packages have."""

    def names(lines: list[str]) -> set[str]:
        return {re.match(r"[\w.-]+", line)[0] for line in lines}

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    only = names(project["optional-dependencies"]["workflow"]) - names(project["dependencies"])
    others = {"setuptools"}  # which every environment has
    return {name.replace("unbabel-", "").replace("-", "_") for name in only - others}


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["plan", "translate"])
def test_without_a_config_one_line_says_so(elsewhere, monkeypatch, capsys, command):
    monkeypatch.setattr(sys, "argv", ["entropy-valley", command])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    problem, *more = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and not more
    assert problem.startswith("error: config.yaml: not in this folder.") and "--configfile" in problem


def test_a_config_that_is_named_is_laid_over_the_installed_one(elsewhere):
    Path("mine.yaml").write_text("models: elsewhere\n")
    assert configs.experiment(["mine.yaml"]).models == "elsewhere"
    assert configs.paths(["mine.yaml"]) == [*base_files(INSTALLED), Path("mine.yaml")]
    Path("config.yaml").write_text("models: here\n")
    assert configs.paths(["mine.yaml"]) == [Path("config.yaml"), Path("mine.yaml")]


def test_config_is_no_short_form_of_configfile(monkeypatch, capsys):
    """To Snakemake it means another thing."""
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "plan", "--config", "config/demo.yaml"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "unrecognized arguments: --config" in capsys.readouterr().err


def test_the_library_needs_only_its_own_packages(elsewhere):
    """Neither does its command."""
    told = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True).stdout
    text, imported = told.splitlines()
    assert text == "Wir gehen nach Hause." and not [*Path().iterdir()]
    assert not set(imported.split()) & of_workflow() and {"torch", "numpy", "tqdm"} <= set(imported.split())


def test_a_command_of_the_workflow_says_what_to_install(status_of, monkeypatch, capsys):
    def raises(arguments):
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

    monkeypatch.setattr(commands, "_show", raises)
    with pytest.raises(ModuleNotFoundError):  # a fault of ours, where all is installed
        status_of("show", "table.md")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert status_of("show", "table.md") == 2
    told = capsys.readouterr().err
    assert "pandas: not installed, and this command needs it" in told and "pip install '.[workflow]'" in told


# --- What the command says of itself.


def said(monkeypatch, capsys, *options):
    monkeypatch.setattr(sys, "argv", ["entropy-valley", *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_its_version(monkeypatch, capsys):
    assert said(monkeypatch, capsys, "--version").split() == [
        "entropy-valley",
        importlib.metadata.version("entropy-valley"),
    ]


def test_help_is_plain_text(monkeypatch, capsys):
    """No Markdown, for the command and each of its commands, whose help says first what it does."""
    monkeypatch.setenv("COLUMNS", "80")
    overview = said(monkeypatch, capsys, "--help")
    assert said(monkeypatch, capsys) == overview
    names = re.findall(r"^    ([a-z-]+)(?: |$)", overview, re.MULTILINE)
    assert {"audit", "translate", "export"} < set(names)
    for text in (overview, *(said(monkeypatch, capsys, name, "--help") for name in names)):
        assert "`" not in text and re.match(r"usage: .*?\n\n[A-Z][a-z]+ .*?\.\n\n", text, re.DOTALL), text
        assert max(map(len, text.splitlines())) <= 80


def test_help_is_there_at_once():
    """It loads no package but those that every Python has: all of them take a second."""
    program = "import sys; sys.argv = ['entropy-valley', '--help']; sys.modules['pydantic'] = None"
    ended = subprocess.run([sys.executable, "-c", f"{program}; from entropy_valley.experiment.cli import main; main()"])
    assert ended.returncode == 0


def test_a_terminal_without_unicode_is_no_error():
    code = "from entropy_valley.experiment.cli import prepare_streams; prepare_streams(); print('0.8 – 1')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True)
    assert ended.stdout == b"0.8 \\u2013 1\n"
