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
    """No Markdown, for the command and each of its commands, whose help says first what it does."""
    monkeypatch.setenv("COLUMNS", "80")
    overview = said(monkeypatch, capsys, "--help")
    names = re.findall(r"^    ([a-z-]+)(?: |$)", overview, re.MULTILINE)
    assert {"audit", "translate", "mt-metrics-eval"} < set(names)
    for text in (overview, *(said(monkeypatch, capsys, name, "--help") for name in names)):
        assert "`" not in text and re.match(r"usage: .*?\n\n[A-Z][a-z]+ .*?\.\n\n", text, re.DOTALL), text
        assert max(map(len, text.splitlines())) <= 80
