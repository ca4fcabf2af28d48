"""Whatever the texts of a config hold, jobs get them as they are: by params of scripts, which no shell reads."""

from __future__ import annotations

import re

import pytest
from workspace import Workspace

from entropy_valley.errors import InputError
from entropy_valley.experiment.runs import snapshot

CONFIGS = ("config/demo.yaml", "config/smallest.yaml")
SHELL = """r a'b"c$(touch X)`touch X`;touch X||touch X&touch X>X|touch X #*?[a]!\\~"""
MARKUP = "r {brace} {{0}} %s \\input{x} <b>&amp;\ntouch X\n\t\x1b[31m\u202e"


def test_any_texts_are_planned_as_they_are(tmp_path):
    tiny = {"label": SHELL + MARKUP, "pretraining": None, "folder": MARKUP}
    prompts = {"en-zh": {"prompt": f"{SHELL}{MARKUP}{{src}}"}}
    over = {"results": SHELL, "backbones": {"llada-tiny": tiny}, "directions": prompts}
    printed = Workspace(tmp_path, *CONFIGS).dry_run("-p", over=over)
    assert len(re.findall(r"^(?:local)?rule ", printed, re.MULTILINE)) > 30
    assert set(re.findall("Shell command: (.*)", printed)) == {"None"}


def test_results_that_became_read_only_are_one_error(tmp_path, monkeypatch):
    """Also where the config of this run is there already."""
    monkeypatch.setenv(snapshot.VARIABLE, "")
    snapshot.hand_down(str(tmp_path), {"device": "cpu"})

    def refuses(*_, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuses)
    with pytest.raises(InputError, match=r"nothing can be written there: Permission denied\. Free space or correct"):
        snapshot.hand_down(str(tmp_path), {"device": "cpu"})
