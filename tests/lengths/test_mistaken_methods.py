"""What a user's own length method may get wrong: one line each, which names file, class, method, sentence and value."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readings import flat, search

from entropy_valley import errors
from entropy_valley.errors import InputError, UserCodeError
from entropy_valley.lengths import Choice, make_method, select
from entropy_valley.lengths.select import sentences_of

METHOD = """\
import itertools
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
LOWEST = "Choice.lowest({length: 1.0 for length in probes})"
LENGTHS = "Return a set of whole numbers of slots, 1 or more"
CHOICE = "Return a Choice"


def chosen(selector, room=200):
    row, _ = search(make_method("mine", {"selector": selector}), 10, room=room)
    return row


@pytest.mark.parametrize(
    ("propose", "problem"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (mine.py, line 10)"),
        ("sentence.target", "AttributeError: 'Sentence' object has no attribute 'target' (mine.py, line 10)"),
        ("None", f"returned None. {LENGTHS}"),
        ("7", "TypeError: 'int' object is not iterable"),
        ("[0]", f"proposes 0 slots. {LENGTHS}"),
        ("[-3]", f"proposes -3 slots. {LENGTHS}"),
        ("[9, 2.5]", f"proposes 2.5 slots. {LENGTHS}"),
        ("[np.float64(9)]", "slots. "),
        ("['9']", f"proposes '9' slots. {LENGTHS}"),
        ("[True]", f"proposes True slots. {LENGTHS}"),
        ("[None]", f"proposes None slots. {LENGTHS}"),
        ("itertools.count(2)", f"proposes more than {select.PROPOSALS} lengths at once"),
        ("itertools.repeat(2)", f"proposes more than {select.PROPOSALS} lengths at once"),
        ("[len(probes) + 2]", "still proposes new lengths after 9 rounds of probes"),
        ("probes.clear()", "AttributeError: 'mappingproxy' object has no attribute 'clear'"),
    ],
)
def test_a_wrong_proposal(users_class, monkeypatch, propose, problem):
    monkeypatch.setattr(select, "ROUNDS", 9)
    selector = users_class(METHOD.format(propose=propose, choose=LOWEST))
    with pytest.raises(InputError) as caught:
        chosen(selector)
    assert str(caught.value).startswith("mine.py, Mine.propose: sentence ") and problem in str(caught.value)


@pytest.mark.parametrize(
    ("choose", "problem"),
    [
        ("3", f"returned 3. {CHOICE}"),
        ("None", f"returned None. {CHOICE}"),
        ("(3, {})", f"returned (3, {{}}). {CHOICE}"),
        ("Choice(probes[99])", "KeyError: 99 (mine.py, line 13)"),
        ("Choice.lowest({})", "ValueError: min() "),
        ("Choice(-3)", "chooses -3 slots"),
        ("Choice(0)", "chooses 0 slots"),
        ("Choice('3')", "chooses '3' slots"),
        ("Choice(2.5)", "chooses 2.5 slots"),
        ("Choice(probes)", "chooses mappingproxy("),
        ("Choice(3, {3: float('nan')})", "gives 3 slots the score nan, no number"),
        ("Choice(3, {3: 'low'})", "gives 3 slots the score 'low', no number"),
        ("Choice(3, {3: torch.ones(2)})", "gives 3 slots the score tensor([1., 1.]), no number"),
        ("Choice(3, {'3': 1.0})", "compares '3' slots"),
        ("Choice(3, [1.0])", "TypeError: "),
        ("Choice(3, contenders=[3, 0])", "keeps 0 slots"),
        ("Choice(3, contenders=4)", "TypeError: 'int' object is not iterable"),
        ("probes.update({7: None}) or Choice(7)", "AttributeError: 'mappingproxy' object has no attribute 'update'"),
    ],
)
def test_a_wrong_choice(users_class, choose, problem):
    selector = users_class(METHOD.format(propose="[3, 4]", choose=choose))
    with pytest.raises(InputError) as caught:
        chosen(selector)
    assert str(caught.value).startswith("mine.py, Mine.choose: sentence ") and problem in str(caught.value)


def test_predictions_cannot_be_changed():
    (sentence,) = sentences_of([{"source": "a b"}], SimpleNamespace(tokens=str.split), Says(()), [{3: -1.0}])
    with pytest.raises(AttributeError, match="mappingproxy"):
        sentence.predicted.pop(3)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=2),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.integers(-1, 4) | st.text(max_size=1), inside, max_size=3)
    ),
    max_leaves=4,
)


class Says:
    """A user's method with this answer to everything."""

    sees_reference = False

    def __init__(self, answer):
        self.propose = self.choose = lambda sentence, probes: answer


@given(ANYTHING | st.builds(Choice, ANYTHING, ANYTHING, ANYTHING, ANYTHING))
def test_any_answer_is_one_line_or_numbers_of_python(answer):
    for ask in (select.proposed, select.chosen):
        try:
            got = ask(Says(answer), None, {}, "sentence 's1'")
        except InputError as error:
            assert "test_mistaken_methods.py, Says." in str(error) and "\n" not in str(error)
        else:
            lengths = got if ask is select.proposed else [got.length, *got.scores, *got.contenders]
            assert all(type(length) is int and length > 0 for length in lengths)
            assert ask is select.proposed or all(score == score for score in got.scores.values())


def test_integers_of_numpy_and_torch_are_lengths(users_class):
    choose = "Choice(torch.tensor(4), {np.int32(3): np.float32(0.5), 4: torch.tensor(0.25)}, [np.int8(3)], 1)"
    row = chosen(
        users_class(METHOD.format(propose="(torch.tensor([4, 3]), np.arange(3, 5))[len(probes) > 0]", choose=choose))
    )
    same = {"length": 4, "candidates": [3, 4], "scores": [0.5, 0.25], "contenders": [3, 4], "rescoring": True}
    assert json.loads(json.dumps(row)) == {**same, "calls": 2, "slots": 7}


@pytest.mark.parametrize("choose", ["Choice(99)", "Choice(9, {7: math.inf})"])
def test_a_length_that_was_not_probed_may_be_chosen(users_class, choose):
    """As `partial_unmask` does; and what is infinite is a score."""
    row = chosen(users_class("import math\n" + METHOD.format(propose="[3]", choose=choose)))
    assert row["length"] in (9, 99) and row["scores"] in ([], [math.inf])


WRONG = {
    "a syntax error": ("class Mine:\n    def f(:\n", "(mine.py, line 2)"),
    "an exception at import": ("x = 1\n1 / 0\n", "ZeroDivisionError: division by zero (mine.py, line 2)"),
    "an exit at import": ("raise SystemExit(3)\n", "SystemExit: 3 (mine.py, line 1)"),
    "an import that is not there": ("import no_such_module\n", "No module named 'no_such_module'"),
    "no class": ("Mine = 3\n", "is no class"),
    "no class of that name": ("", "module 'mine' has no attribute 'Mine'"),
    "no sees_reference": (METHOD.replace("sees_reference", "sees"), "has no sees_reference"),
    "an abstract method": (
        METHOD.replace("Choice\n", "Choice, LengthMethod\n")
        .replace("Mine:", "Mine(LengthMethod):")
        .replace("propose", "pro"),
        "abstract method",
    ),
    "an exception in the constructor": (METHOD + "    def __init__(self): self.x = 1 / 0\n", "(mine.py, line 14)"),
    "too few arguments": (
        METHOD.replace("propose(self, sentence, probes)", "propose(self, sentence)"),
        "propose is called with 2 arguments: too many positional arguments",
    ),
    "no method": (METHOD + "    choose = 3\n", "choose is no method"),
    "a flag that is none": (METHOD.replace("= False", "= 'no'"), "sees_reference is 'no'. It is True or False"),
    "half a step": (METHOD + "    draft_steps = 0.5\n", "draft_steps is 0.5"),
    "steps below 0": (METHOD + "    draft_steps = -1\n", "draft_steps is -1"),
}


@pytest.mark.parametrize(("code", "problem"), WRONG.values(), ids=WRONG)
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
    assert any("mine.py" in line and "line 13, in choose" in line for line in before) and before[-1] == "KeyError: 10"
    said = "error: mine.py, Mine.choose: sentence None: KeyError: 10 (mine.py, line 13). Mend it; the traceback is in"
    assert last == f"{said} the log."


def test_our_own_exception_stays_a_traceback():
    method = make_method("ev", {"ratios": [0.2, 0.3]})
    with pytest.raises(ZeroDivisionError) as caught:  # what EV cannot score: no slot but that of the EOS
        select.chosen(method, None, {1: flat(1)}, "sentence 's1'")
    assert not isinstance(caught.value, UserCodeError)
