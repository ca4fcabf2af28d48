"""The commands in a folder that is no root of the repository, and what an installation needs for that."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import wheels

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
    assert not set(imported.split()) & wheels.of_workflow() and {"torch", "numpy", "tqdm"} <= set(imported.split())


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


def test_a_wheel_has_the_config_files(tmp_path):
    """In the repository they are links."""
    with zipfile.ZipFile(wheels.build(tmp_path)) as wheel:
        for file in ("config.yaml", "config/studies.yaml", "config/released.yaml", "config/schema.json"):
            assert wheel.read(f"entropy_valley/defaults/{file}") == (ROOT / file).read_bytes()
