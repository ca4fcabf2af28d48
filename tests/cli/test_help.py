"""What the command says of itself."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys

import pytest

from entropy_valley.experiment import cli


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
