from __future__ import annotations

import subprocess
import sys

import pytest

from entropy_valley import files

KIWI = {"repository": "Unbabel/wmt22-cometkiwi-da", "revision": "0" * 40}


@pytest.fixture
def fetch(scripts, tmp_path):
    """Ask for a repository in a folder that has CometKiwi."""
    files.write_json(tmp_path / "models" / "kiwi" / "comet.json", KIWI)

    def run(repository):
        where = ("--folder", tmp_path / "models" / "kiwi", "--out", tmp_path / "kiwi.json")
        command = [sys.executable, scripts / "fetch_comet.py", repository, *where]
        return subprocess.run(command, capture_output=True, text=True)

    return run


def test_what_is_there_is_not_fetched_again(fetch, tmp_path):
    assert fetch(KIWI["repository"]).returncode == 0
    assert files.read_json(tmp_path / "kiwi.json") == KIWI


def test_another_checkpoint_under_the_same_name_is_refused(fetch, tmp_path):
    done = fetch("Unbabel/XCOMET-XL")
    assert done.returncode and "Traceback" not in done.stderr
    assert "has Unbabel/wmt22-cometkiwi-da, but the config asks for Unbabel/XCOMET-XL" in done.stderr
    assert not (tmp_path / "kiwi.json").exists()
