"""The walk-through of docs/extending.md, as a user would follow it: a file of their own and a few lines of config."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from readings import search

from entropy_valley.canvas.length_methods import LENGTH_METHODS, make_method
from entropy_valley.experiment import base_files, load_files
from entropy_valley.experiment.params import methods

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
CODE, BLOCK = re.search(r"```python\n(# lengths\.py.*?)```\n\n```yaml\n(.*?)```", GUIDE, re.DOTALL).groups()


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    (tmp_path / "lengths.py").write_text(CODE)
    (tmp_path / "mine.yaml").write_text(BLOCK)
    monkeypatch.syspath_prepend(tmp_path)
    return load_files([*base_files(ROOT), tmp_path / "mine.yaml"])


def test_it_is_short():
    assert len((CODE + BLOCK).splitlines()) < 30


def test_it_is_loaded_from_outside_the_package_and_chooses(experiment):
    settings = methods.selector_settings(experiment, "confident", "en-zh")
    assert settings == {"selector": "lengths:MostConfident", "ratios": [0.7, 0.8, 0.9]}
    selector = make_method("confident", settings)
    assert not type(selector).__module__.startswith("entropy_valley") and type(selector) not in LENGTH_METHODS.values()
    row, rounds = search(selector, 10, confidence={8: 0.5, 9: 0.7, 10: 0.6}.__getitem__)
    assert rounds == [[8, 9, 10]]
    assert (row["length"], row["calls"], row["slots"]) == (9, 3, 27)
    assert not methods.needs_statistics(experiment, "confident")


def test_it_may_ask_for_statistics(experiment, tmp_path, monkeypatch):
    declared = CODE.replace("sees_reference = False", "sees_reference = False\n    uses_statistics = True")
    (tmp_path / "fitted_lengths.py").write_text(declared.replace("ratios):", "ratios, statistics):", 1))
    settings = {"selector": "fitted_lengths:MostConfident", "ratios": [1.0]}
    assert make_method("fitted", settings).propose is not None
    (tmp_path / "mine.yaml").write_text(BLOCK.replace("lengths:", "fitted_lengths:"))
    experiment = load_files([*base_files(ROOT), tmp_path / "mine.yaml"])
    assert methods.needs_statistics(experiment, "confident") and not methods.needs_statistics(experiment, "ev")
