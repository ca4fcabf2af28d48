"""What the command says of itself."""

from __future__ import annotations

import importlib.metadata
import re
import sys

import pytest

from entropy_valley import cli


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
    """No Markdown, for the command and each of its commands."""
    overview = said(monkeypatch, capsys, "--help")
    names = re.findall(r"\{([a-z,-]+)\}", overview)[0].split(",")
    assert {"audit", "translate", "mt-metrics-eval"} < set(names)
    assert "`" not in overview + "".join(said(monkeypatch, capsys, name, "--help") for name in names)
