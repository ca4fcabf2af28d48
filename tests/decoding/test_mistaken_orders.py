"""What a user's own reveal order or variable-length decoder may get wrong: one line each, and no endless decoding."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from entropy_valley import files
from entropy_valley.decoding.batch import Batch, Pass
from entropy_valley.decoding.head import SlotValues
from entropy_valley.decoding.orders import Denoising, make_denoiser
from entropy_valley.decoding.requests import Canvas, Reading
from entropy_valley.errors import InputError

MASK, EOS = 9, 8
ORDER = """\
import torch

class Mine:
    def scores(self, slots):
        return {scores}
"""
DECODER = """\
import numpy as np
from entropy_valley.decoding.variable_length import Guess, Revealed

class Mine:
    cap = 8

    def advance(self, seen, eos_id, step, most):
        return {slots}
"""


def step(order, entropies=(0.1, 0.3, 0.2, 0.5, 0.6, 0.4)):
    """One step of two canvases of three slots, which reveals a slot of each: their token ids, and the slots'."""
    canvases = [Canvas([1, 2], 3, [1, 1, 1], sentence=name) for name in ("s1", "s2")]
    batch, entropies = Batch.of(list(enumerate(canvases)), MASK), torch.tensor(entropies, dtype=torch.float64)
    values = SlotValues(torch.arange(6), entropies, -entropies, -entropies)
    after, _ = batch.advance(Pass(batch.masked(), values), order)
    return after.ids[after.slot >= 0].tolist()


NUMBERS = "Return a tensor with one number for each slot"


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ("1 / 0", "sentence 's1' and all in its pass: ZeroDivisionError: division by zero (mine.py, line 5)"),
        ("slots.reference", "AttributeError: 'Slots' object has no attribute 'reference' (mine.py, line 5)"),
        ("None", f"returned None, no tensor. {NUMBERS}"),
        ("slots.values.entropy.tolist()", f"returned [0.1, 0.3, 0.2, 0.5, 0.6, 0.4], no tensor. {NUMBERS}"),
        ("slots.values.entropy.numpy()", f", no tensor. {NUMBERS}"),
        ("slots.values.entropy[:-1]", "a tensor of shape (5,) on cpu, torch.float64, for 6 masked slots"),
        ("slots.values.entropy[:, None]", "a tensor of shape (6, 1) on cpu"),
        ("slots.values.entropy.sum()", "a tensor of shape () on cpu"),
        ("slots.values.entropy.to('meta')", "a tensor of shape (6,) on meta"),
        ("slots.values.entropy.to(torch.complex64)", "torch.complex64"),
        ("slots.values.entropy * torch.nan", "sentence 's1', canvas of 3 slots, slot 0, step 0: gives NaN"),
        (
            "slots.values.entropy.where((slots.canvas == 0) | (slots.position < 2), torch.nan)",
            "sentence 's2', canvas of 3 slots, slot 2, step 0: gives NaN. Give every masked slot a number",
        ),
    ],
)
def test_wrong_scores_of_an_order(users_class, scores, problem):
    order = make_denoiser(users_class(ORDER.format(scores=scores)))
    with pytest.raises(InputError) as caught:
        step(order)
    assert str(caught.value).startswith("mine.py, Mine.scores: ") and problem in str(caught.value)


@pytest.mark.parametrize(
    "scores", ["-slots.position", "slots.position < 2", "1 / (slots.position - 2)", "slots.values.eos"]
)
def test_integers_flags_and_infinities_are_scores(users_class, scores):
    revealed = step(make_denoiser(users_class(ORDER.format(scores=scores))))
    assert len(revealed) == 6 and revealed.count(MASK) == 4


def test_an_order_cannot_change_what_the_model_says(users_class):
    scores = "slots.values.entropy.mul_(-1) + slots.values.token.zero_() + slots.values.logprob.zero_()"
    assert step(make_denoiser(users_class(ORDER.format(scores=scores)))) == [MASK, 1, MASK, MASK, 4, MASK]


def test_a_model_that_gives_no_numbers_is_no_fault_of_the_order():
    with pytest.raises(InputError, match=r"model: gives NaN for slot 1 of a canvas of 3 slots\. Its weights or"):
        step(make_denoiser("med"), (0.1, math.nan, 0.2, 0.5, 0.6, 0.4))


def test_whether_a_step_needs_the_source_free_pass_is_the_users_code_too(users_class):
    code = ORDER.format(scores="slots.sig") + "    def needs_sourceless(self, step, steps): return step / 0\n"
    with pytest.raises(InputError, match=r"mine\.py, Mine\.needs_sourceless: step 0 of 3: ZeroDivisionError"):
        Denoising.named(users_class(code), 3, "llada").request([1], [1], 3, 9)


def denoise(name):
    """What a decoder makes of three masks of sentence ``s1``, with room for nine slots; its ``cap`` is 8."""
    request = Denoising.named(name, 4, "llada").request([1], None, 3, 9, sentence="s1")
    work = request.canvases(SimpleNamespace(mask_id=MASK, eos_id=EOS), lambda asked: None)
    canvas = next(work)
    while True:
        masks = canvas.length if canvas.tokens is None else canvas.tokens.count(MASK)
        try:
            canvas = work.send(Reading((1,) * masks, (0.5,) * masks, (-0.5,) * masks, (-9.0,) * masks))
        except StopIteration as done:
            return done.value


@pytest.mark.parametrize(
    ("slots", "problem"),
    [
        ("1 / 0", "pass 0: ZeroDivisionError: division by zero (mine.py, line 8)"),
        ("None", "pass 0: returned None. Return a list"),
        ("[]", "pass 0: returned []. Return a list"),
        ("5", "pass 0: TypeError: 'int' object is not iterable"),
        ("[None] * len(seen)", "pass 0: reveals no slot"),
        ("seen[:1] + [None, None] if step else [Revealed(1, -0.5), None, None]", "pass 1: reveals no slot"),
        ("[Revealed(1, -0.5)] + [None] * 8", "pass 0: returned 9 slots, but there is room for 8"),
        ("[Revealed(1, -0.5)] + [None] * (2 + step % 2)", "pass 15: leaves masks after 16 passes"),
        ("['a'] * 3", "AttributeError: 'str' object has no attribute 'token'"),
        ("[Revealed(-1, -0.5)] * 3", "reveals token -1 of log-probability -0.5"),
        ("[Revealed(1.5, -0.5)] * 3", "reveals token 1.5 of"),
        ("[Revealed(1, float('nan'))] * 3", "of log-probability nan"),
    ],
)
def test_wrong_canvases_of_a_decoder(users_class, slots, problem):
    name = users_class(DECODER.format(slots=slots))
    with pytest.raises(InputError) as caught:
        denoise(name)
    assert str(caught.value).startswith("mine.py, Mine.advance: sentence 's1', ") and problem in str(caught.value)


@pytest.mark.parametrize("slots", ["seen", "[Revealed(np.int64(1), np.float64(-0.5))] * 3"])
def test_guesses_and_numbers_of_numpy_are_revealed(users_class, slots):
    decoded = denoise(users_class(DECODER.format(slots=slots)))
    assert files.canonical(decoded.to_json()) == files.canonical(
        {"tokens": [1, 1, 1], "text": 3, "logprob": -0.5, "passes": 1, "slots": 3, "rows": 3}
    )


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (ORDER.replace("scores(self, slots)", "scores(self)"), "scores is called with 1 argument: too many"),
        (ORDER + "    scores = 3\n", "scores is no method"),
        (DECODER.replace(", most)", ")"), "advance is called with 4 arguments: too many"),
        (DECODER.replace("cap = 8", "cap = '8'"), "cap is '8'"),
        ("class Mine\n", "expected ':' (mine.py, line 1)"),
        (ORDER + "    def __init__(self): raise OSError(5)\n", "OSError: 5 (mine.py, line 6)"),
    ],
)
def test_a_wrong_class_is_told_before_any_job(users_class, code, problem):
    with pytest.raises(InputError) as caught:
        make_denoiser(users_class(code.replace("{scores}", "0").replace("{slots}", "0")))
    assert "'mine:Mine': " in str(caught.value) and problem in str(caught.value)
