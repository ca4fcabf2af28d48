"""What a user's own length method may get wrong: its traceback, and one line that names file, class and method."""

from __future__ import annotations

import json
import re

import pytest
from readings import search

from entropy_valley import errors
from entropy_valley.errors import InputError
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


def chosen(selector):
    row, _ = search(make_method("mine", {"selector": selector}), 10, room=200)
    return row


@pytest.mark.parametrize(
    ("propose", "choose", "problem"),
    [
        ("None", "Choice(3)", "mine.py, Mine.propose: sentence None: TypeError: 'NoneType' object is not iterable"),
        ("[9, 2.5]", "Choice(3)", "Mine.propose: sentence None: TypeError: 'float' object cannot be interpreted"),
        ("[0]", "Choice(3)", "Mine.propose: sentence None: proposes 0 slots. Give 1 or more."),
        ("[3]", "4", "Mine.choose: sentence None: AttributeError: 'int' object has no attribute"),
        ("[3]", "Choice(0)", "Mine.choose: sentence None: chooses 0 slots. Choose 1 or more."),
    ],
)
def test_a_wrong_answer(users_class, propose, choose, problem):
    selector = users_class(METHOD.format(propose=propose, choose=choose))
    with pytest.raises(InputError, match=re.escape(problem)):
        chosen(selector)


def test_integers_of_numpy_and_torch_are_lengths(users_class):
    choose = "Choice(torch.tensor(4), {np.int32(3): np.float32(0.5), 4: torch.tensor(0.25)}, [np.int8(3)], 1)"
    row = chosen(
        users_class(METHOD.format(propose="(torch.tensor([4, 3]), np.arange(3, 5))[len(probes) > 0]", choose=choose))
    )
    same = {"length": 4, "candidates": [3, 4], "scores": [0.5, 0.25], "contenders": [3, 4], "rescoring": True}
    assert json.loads(json.dumps(row)) == {**same, "calls": 2, "slots": 7}


def test_a_length_that_was_not_probed_may_be_chosen(users_class):
    """As `partial_unmask` does."""
    assert chosen(users_class(METHOD.format(propose="[3]", choose="Choice(99)")))["length"] == 99


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("1 / 0\n", "ZeroDivisionError: division by zero. Correct the module"),
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("", "module 'mine' has no attribute 'Mine'"),
        ("Mine = 3\n", "is no class"),
        (METHOD.replace("sees_reference", "sees"), "has no sees_reference"),
        (METHOD + "    def __init__(self): self.x = 1 / 0\n", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_class_is_told_before_any_job(users_class, code, problem):
    with pytest.raises(InputError, match=re.escape("length method 'mine:Mine': ")) as caught:
        make_method("mine", {"selector": users_class(code.replace("{propose}", "()").replace("{choose}", "Choice(3)"))})
    assert problem in str(caught.value)


def test_the_users_exception_keeps_its_traceback_and_ends_with_one_line(users_class, capsys):
    selector = users_class(METHOD.format(propose="[3]", choose="Choice(probes[sentence.source_tokens])"))
    with pytest.raises(SystemExit) as status:
        errors.run(lambda: chosen(selector))
    *before, last = capsys.readouterr().err.splitlines()
    assert status.value.code == 2 and before[0] == "Traceback (most recent call last):"
    assert any("mine.py" in line and "line 12, in choose" in line for line in before) and before[-1] == "KeyError: 10"
    assert last == "error: mine.py, Mine.choose: sentence None: KeyError: 10. The traceback is above."
