"""The commands in a folder that is no root of the repository, and what an installation needs for that."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from entropy_valley import cli
from entropy_valley.cli import configs
from entropy_valley.config import base_files
from entropy_valley.config.load import INSTALLED

ROOT = Path(__file__).parents[2]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["plan", "audit", "check", "translate", "mt-metrics-eval out"])
def test_without_a_config_one_line_says_so(elsewhere, monkeypatch, capsys, command):
    monkeypatch.setattr(sys, "argv", ["entropy-valley", *command.split()])
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


def test_a_wheel_has_the_config_files(tmp_path):
    """In the repository they are links."""
    for name in ("src", "config"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "config.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    build = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    name = subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True, text=True)
    with zipfile.ZipFile(tmp_path / name.stdout.splitlines()[-1]) as wheel:
        for file in ("config.yaml", "config/studies.yaml", "config/released.yaml"):
            assert wheel.read(f"entropy_valley/defaults/{file}") == (ROOT / file).read_bytes()
