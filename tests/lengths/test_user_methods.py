"""A user's own length method: what works, and what its mistakes say."""

import json
import re
import sys
from pathlib import Path

import pytest
from readings import STATISTICS, search

from entropy_valley import errors, plugins
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import base_files, load_files, methods
from entropy_valley.lengths import make_method

METHOD = """\
import numpy as np
import torch
from entropy_valley.lengths.base import Choice

class Mine:
    sees_reference = False

    def propose(self, sentence, probes):
        return {propose}

    def choose(self, sentence, probes):
        return {choose}
"""


def chosen(length_method):
    row, _ = search(make_method("mine", {"method": length_method}), 10, room=200)
    return row


@pytest.mark.parametrize(
    ("propose", "choose", "problem"),
    [
        ("None", "Choice(3)", "mine.py, Mine.propose: sentence None: returns None. Return a list of whole numbers"),
        ("[9, 2.5]", "Choice(3)", "Mine.propose: sentence None: proposes 2.5 slots. Give whole numbers."),
        ("[0]", "Choice(3)", "Mine.propose: sentence None: proposes 0 slots. Give 1 or more."),
        ("[3]", "4", "Mine.choose: sentence None: returns 4, which is not a Choice. Return `Choice.lowest(scores)`"),
        ("[3]", "Choice(0)", "Mine.choose: sentence None: chooses 0 slots. Choose 1 or more."),
        ("[3]", "Choice(4.0)", "Mine.choose: sentence None: chooses 4.0 slots. Give whole numbers."),
        ("[3]", "Choice(3, {3.0: 0.5})", "Mine.choose: sentence None: scores 3.0 slots. Give whole numbers."),
        ("[3]", "Choice(3, {3: -np.inf})", "Mine.choose: sentence None: scores 3 slots as -inf. Leave such lengths"),
    ],
)
def test_a_wrong_answer(users_class, propose, choose, problem):
    length_method = users_class(METHOD.format(propose=propose, choose=choose))
    with pytest.raises(InputError, match=re.escape(problem)):
        chosen(length_method)


def test_integers_of_numpy_and_torch_are_lengths(users_class):
    choose = "Choice(torch.tensor(4), {np.int32(3): np.float32(0.5), 4: torch.tensor(0.25)}, [np.int8(3)], 1)"
    row = chosen(
        users_class(METHOD.format(propose="(torch.tensor([4, 3]), np.arange(3, 5))[len(probes) > 0]", choose=choose))
    )
    same = {"length": 4, "candidates": [3, 4], "scores": [0.5, 0.25], "contenders": [3, 4], "rescoring": True}
    assert json.loads(json.dumps(row)) == {**same, "calls": 2, "slots": 7}


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("1 / 0\n", "mine.py, line 1: ZeroDivisionError: division by zero. Correct the module"),
        ("import json\n\njson.loads('[')\n", "mine.py, line 3: JSONDecodeError: "),
        ("import no_such_module\n", "mine.py, line 1: ModuleNotFoundError: No module named 'no_such_module'. Correct"),
        ("def f(:\n", "SyntaxError: invalid syntax (mine.py, line 1). Correct the module"),
        ("", "mine.py has no 'Mine'. Name a class"),
        ("class Mien: ...\n", "mine.py has no 'Mine'. Did you mean Mien? Name a class"),
        ("Mine = 3\n", "is not a class"),
        (METHOD.replace("sees_reference", "sees"), "has no sees_reference"),
        (METHOD + "    def __init__(self): self.x = 1 / 0\n", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_class_is_told_before_any_job(users_class, code, problem):
    with pytest.raises(InputError, match=re.escape("length method 'mine:Mine': ")) as caught:
        make_method("mine", {"method": users_class(code.replace("{propose}", "()").replace("{choose}", "Choice(3)"))})
    assert problem in str(caught.value)


def test_a_module_of_the_users_that_python_has_another_of_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "statistics.py").write_text("class Mine: ...")
    with pytest.raises(InputError, match=r"/.*/statistics\.py has no 'Mine'\. Name a class of this file, or give"):
        make_method("mine", {"method": "statistics:Mine"})


def test_the_users_exception_keeps_its_traceback_and_ends_with_one_line(users_class, capsys):
    length_method = users_class(METHOD.format(propose="[3]", choose="Choice(probes[sentence.source_tokens])"))
    with pytest.raises(SystemExit) as status, errors.in_one_line():
        chosen(length_method)
    *before, last = capsys.readouterr().err.splitlines()
    assert status.value.code == 2 and before[0] == "Traceback (most recent call last):"
    assert any("mine.py" in line and "line 12, in choose" in line for line in before) and before[-1] == "KeyError: 10"
    assert last.startswith("error: mine.py, Mine.choose: sentence None: KeyError: 10. Its traceback is printed before")


ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
CODE = re.search(r"```python\n(# lengths\.py.*?)```", TUTORIAL, re.DOTALL)[1]
BLOCK = """\
matrix: {methods: [oracle, ratio, ev, confident], directions: [en-zh]}
length_methods:
  confident: {method: "lengths:MostConfident", same_ratios_as: ev}
"""


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    (tmp_path / "lengths.py").write_text(CODE)
    (tmp_path / "mine.yaml").write_text(BLOCK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lengths", raising=False)  # another test's
    return load_files([*base_files(ROOT), tmp_path / "mine.yaml"])


def test_it_is_loaded_from_outside_the_package_and_chooses(experiment):
    settings = methods.method_settings(experiment, "confident", "en-zh")
    assert settings == {"method": plugins.with_code("lengths:MostConfident"), "ratios": [0.7, 0.75, 0.8, 0.85, 0.9]}
    length_method = make_method("confident", settings)
    assert not type(length_method).__module__.startswith("entropy_valley")
    row, rounds = search(length_method, 10, confidence={8: 0.5, 9: 0.7, 10: 0.6}.__getitem__)
    assert rounds == [[8, 9, 10]]  # 7.5 and 8.5 are cut to whole tokens
    assert (row["length"], row["calls"], row["slots"]) == (9, 3, 27)
    assert not methods.declares(experiment, "confident", "uses_statistics")


def test_an_edit_of_its_code_repeats_its_jobs_and_a_comment_does_not(experiment, tmp_path):
    before = methods.method_settings(experiment, "confident", "en-zh")
    (tmp_path / "lengths.py").write_text(CODE + "\n\n# the end\n")
    assert methods.method_settings(experiment, "confident", "en-zh") == before
    (tmp_path / "lengths.py").write_text(CODE.replace("-sum", "sum"))
    assert methods.method_settings(experiment, "confident", "en-zh") != before
    with pytest.raises(InputError, match="'lengths:MostConfident': its code was edited since the run began"):
        make_method("confident", before)


PLAIN = """
class MostConfident:
    sees_reference = False
    uses_statistics = ("line",)

    def __init__(self, ratios):
        self.ratios = ratios

    def with_statistics(self, statistics):
        self.statistics = statistics
        return self

    def propose(self, sentence, probes):
        return {int(ratio * sentence.source_tokens) for ratio in self.ratios}

    def choose(self, sentence, probes):
        return Choice(max(probes))
"""
FITTED = "from entropy_valley.lengths.base import Fitted\n" + CODE.replace("(LengthMethod)", "(Fitted)")


@pytest.mark.parametrize("code", [PLAIN, FITTED], ids=["plain", "of fields"])
def test_it_may_ask_for_statistics(tmp_path, monkeypatch, code):
    (tmp_path / "fitted_lengths.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fitted_lengths", raising=False)
    settings = {"method": "fitted_lengths:MostConfident", "ratios": [1.0]}
    assert make_method("fitted", settings, STATISTICS).statistics is STATISTICS
    (tmp_path / "mine.yaml").write_text(BLOCK.replace("lengths:", "fitted_lengths:"))
    experiment = load_files([*base_files(ROOT), tmp_path / "mine.yaml"])
    assert methods.declares(experiment, "confident", "uses_statistics") == ("line",)
    assert not methods.declares(experiment, "ev", "uses_statistics")
