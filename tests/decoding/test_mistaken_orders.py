"""What a user's own reveal order or variable-length decoder may get wrong: one line each, and no endless decoding."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from entropy_valley import files
from entropy_valley.decoding.batch import Batch, Pass
from entropy_valley.decoding.canvas import Canvas, ProbeResult
from entropy_valley.decoding.head import SlotValues
from entropy_valley.decoding.requests import Denoising, make_denoiser
from entropy_valley.errors import InputError

MASK, EOS = 9, 8
ORDER = """\
import torch
from entropy_valley.decoding.orders import Order

class Mine(Order):
    def scores(self, slots):
        return {scores}
"""
DECODER = """\
import numpy as np
from entropy_valley.decoding.variable_length import Guess, Revealed, VariableLengthDecoder

class Mine(VariableLengthDecoder):
    cap: int = 8

    def advance(self, seen, eos_id, step, most):
        return {slots}
"""


def step(order, entropies=(0.1, 0.3, 0.2, 0.5, 0.6, 0.4)):
    """One step of two canvases of three slots, which reveals a slot of each: their token ids, and the slots'."""
    canvases = [Canvas([1, 2], 3, [1, 1, 1], sentence=name) for name in ("s1", "s2")]
    batch, entropies = Batch.of(list(enumerate(canvases)), MASK), torch.tensor(entropies, dtype=torch.float64)
    values = SlotValues(torch.arange(6), entropies, -entropies, -entropies)
    after, _, _ = batch.step(Pass(batch.masked(), values, np.zeros((2, 2))), order, EOS)
    return after.ids[after.slot >= 0].tolist()


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ("1 / 0", "sentence 's1' and all in its pass: ZeroDivisionError: division by zero. Its traceback is printed"),
        ("None", "returned NoneType (). Return a tensor with one number for each of the 6 slots."),
        ("slots.values.entropy[:-1]", "returned Tensor (5,)"),
        ("-slots.sig", "sentence 's1', canvas of 3 slots, slot 0, step 0: gives NaN. Give every masked slot a number"),
        ("(1 - slots.canvas) / (slots.position - 2)", "sentence 's2', canvas of 3 slots, slot 2, step 0: gives NaN."),
    ],
)
def test_wrong_scores_of_an_order(users_class, scores, problem):
    order = make_denoiser(users_class(ORDER.format(scores=scores)))
    with pytest.raises(InputError) as caught:
        step(order)
    assert str(caught.value).startswith("mine.py, Mine.scores: ") and problem in str(caught.value)


@pytest.mark.parametrize("scores", ["-slots.position", "slots.position < 2", "1 / (slots.position - 2)"])
def test_integers_flags_and_infinities_are_scores(users_class, scores):
    revealed = step(make_denoiser(users_class(ORDER.format(scores=scores))))
    assert len(revealed) == 6 and revealed.count(MASK) == 4


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("from entropy_valley.decoding.orders import Order\nclass Mine(Order): ...", "abstract method scores"),
        ("class Mine:\n    def scores(self, slots): ...", "inherits from neither Order nor VariableLengthDecoder"),
    ],
)
def test_a_wrong_class(users_class, code, problem):
    with pytest.raises(InputError, match=problem):
        make_denoiser(users_class(code))


def test_a_model_that_gives_no_numbers_is_no_fault_of_the_order():
    with pytest.raises(InputError, match=r"model: gives NaN for slot 1 of a canvas of 3 slots\. Its weights or"):
        step(make_denoiser("med"), (0.1, math.nan, 0.2, 0.5, 0.6, 0.4))


def test_whether_a_step_needs_the_source_free_pass_is_the_users_code_too(users_class):
    code = ORDER.format(scores="slots.sig") + "    def needs_sourceless(self, step, steps): return step / 0\n"
    code = code.replace("(Order)", "(SourceGuided)").replace("import Order", "import Order, SourceGuided")
    with pytest.raises(InputError, match=r"mine\.py, Mine\.needs_sourceless: step 0 of 3: ZeroDivisionError"):
        Denoising.named(users_class(code), 3, "llada", {"sig": "stepwise_kl"}).request(
            Canvas([1], 3, sourceless=[1]), 9
        )


def denoise(name):
    """What a decoder makes of three masks of sentence ``s1``, with room for nine slots; its ``cap`` is 8."""
    request = Denoising.named(name, 4, "llada").request(Canvas([1], 3, sentence="s1"), 9)
    work = request.canvases(SimpleNamespace(mask_id=MASK, eos_id=EOS), lambda other: None)
    canvas = next(work)
    while True:
        masks = canvas.length if canvas.tokens is None else canvas.tokens.count(MASK)
        try:
            canvas = work.send(ProbeResult((1,) * masks, (0.5,) * masks, (-0.5,) * masks, (-9.0,) * masks))
        except StopIteration as done:
            return done.value


@pytest.mark.parametrize(
    ("slots", "problem"),
    [
        ("1 / 0", "pass 0: ZeroDivisionError: division by zero"),
        ("None", "pass 0: TypeError: 'NoneType' object is not iterable"),
        ("[None] * len(seen)", "pass 0: reveals no slot"),
        ("[Revealed(1, -0.5)] + [None] * 8", "pass 0: returned 9 slots, of at most 8"),
    ],
)
def test_wrong_canvases_of_a_decoder(users_class, slots, problem):
    name = users_class(DECODER.format(slots=slots))
    with pytest.raises(InputError) as caught:
        denoise(name)
    assert str(caught.value).startswith("mine.py, Mine.advance: sentence 's1', ") and problem in str(caught.value)


SEEN, NUMPY = "[Revealed(*one[:2]) for one in seen]", "[Revealed(np.int64(1), np.float64(-0.5))] * 3"


@pytest.mark.parametrize("slots", [SEEN, NUMPY])
def test_numbers_of_numpy_are_revealed(users_class, slots):
    decoded = denoise(users_class(DECODER.format(slots=slots)))
    assert files.canonical(vars(decoded)) == files.canonical(
        {"tokens": [1, 1, 1], "text": 3, "logprob": -0.5, "passes": 1, "slots": 3, "rows": 3}
    )
