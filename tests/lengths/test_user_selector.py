"""The walk-through of docs/extending.md, as a user would follow it: a file of their own and a few lines of config."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from readings import STATISTICS, search

from entropy_valley import plugins
from entropy_valley.config import base_files, load_files, methods
from entropy_valley.errors import InputError
from entropy_valley.lengths import LENGTH_METHODS, make_method

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
CODE, BLOCK = re.search(r"```python\n(# lengths\.py.*?)```\n\n```yaml\n(.*?)```", GUIDE, re.DOTALL).groups()


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    (tmp_path / "lengths.py").write_text(CODE)
    (tmp_path / "mine.yaml").write_text(BLOCK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lengths", raising=False)  # another test's
    return load_files([*base_files(ROOT), tmp_path / "mine.yaml"])


def test_it_is_short():
    assert len((CODE + BLOCK).splitlines()) < 32


def test_it_is_loaded_from_outside_the_package_and_chooses(experiment):
    settings = methods.selector_settings(experiment, "confident", "en-zh")
    assert settings == {"selector": plugins.with_code("lengths:MostConfident"), "ratios": [0.7, 0.75, 0.8, 0.85, 0.9]}
    selector = make_method("confident", settings)
    assert not type(selector).__module__.startswith("entropy_valley") and type(selector) not in LENGTH_METHODS.values()
    row, rounds = search(selector, 10, confidence={8: 0.5, 9: 0.7, 10: 0.6}.__getitem__)
    assert rounds == [[8, 9, 10]]  # 7.5 and 8.5 are cut to whole tokens
    assert (row["length"], row["calls"], row["slots"]) == (9, 3, 27)
    assert not methods.needs_statistics(experiment, "confident")


def test_an_edit_of_its_code_repeats_its_jobs_and_a_comment_does_not(experiment, tmp_path):
    before = methods.selector_settings(experiment, "confident", "en-zh")
    (tmp_path / "lengths.py").write_text(CODE + "\n\n# the end\n")
    assert methods.selector_settings(experiment, "confident", "en-zh") == before
    (tmp_path / "lengths.py").write_text(CODE.replace("-sum", "sum"))
    assert methods.selector_settings(experiment, "confident", "en-zh") != before
    with pytest.raises(InputError, match="'lengths:MostConfident': its code was edited since the run began"):
        make_method("confident", before)


PLAIN = """
class MostConfident:
    sees_reference = False
    uses_statistics = True

    def __init__(self, ratios, statistics):
        self.ratios, self.statistics = ratios, statistics

    def propose(self, sentence, probes):
        return {int(ratio * sentence.source_tokens) for ratio in self.ratios}

    def choose(self, sentence, probes):
        return Choice(max(probes))
"""
FITTED = CODE.replace("import Choice, LengthMethod", "import Choice, Fitted").replace("(LengthMethod)", "(Fitted)")


@pytest.mark.parametrize("code", [PLAIN, FITTED], ids=["plain", "of fields"])
def test_it_may_ask_for_statistics(tmp_path, monkeypatch, code):
    (tmp_path / "fitted_lengths.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fitted_lengths", raising=False)
    settings = {"selector": "fitted_lengths:MostConfident", "ratios": [1.0]}
    assert make_method("fitted", settings, STATISTICS).statistics is STATISTICS
    (tmp_path / "mine.yaml").write_text(BLOCK.replace("lengths:", "fitted_lengths:"))
    experiment = load_files([*base_files(ROOT), tmp_path / "mine.yaml"])
    assert methods.needs_statistics(experiment, "confident") and not methods.needs_statistics(experiment, "ev")


def test_its_settings_are_checked_as_ours_with_their_key(tmp_path, experiment):
    bad = "ratios: {en-zh: [0.7, -0.8], zh-en: [1.1], en-de: [1.5]}, ratio: 1"
    (tmp_path / "mine.yaml").write_text(BLOCK.replace("same_ratios_as: ev", bad))
    with pytest.raises(InputError) as caught:
        load_files([*base_files(ROOT), tmp_path / "mine.yaml"])
    assert "2 problems" in str(caught.value)
    key = "mine.yaml: length_methods.confident"
    assert f"{key}.ratios.en-zh.1 = -0.8: must be greater than 0" in str(caught.value)
    assert f"{key}.ratio = 1: unknown key" in str(caught.value)
