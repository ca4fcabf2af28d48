"""The orders by the authors' SIG: what is decoded is what plain loops in the manner of their code decode."""

import copy
import dataclasses
import random

import pytest
import reference_authors
import torch
from bench import denoised, in_prompts

from entropy_valley.decoding.canvas import Canvas, Ledger
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.requests import Denoising, Memo, Runner, VariableLength, make_denoiser
from entropy_valley.errors import InputError
from entropy_valley.store import Store
from entropy_valley.translation.sentences import Sentences

PAIRS = ((1, 2), (5, 5), (8, 3), (13, 5), (9, 16))  # canvas length, step budget
ORDERS = [
    ("med", {}),
    ("sig_first", {}),
    ("reverse_sig", {}),
    ("entropy_weighted_sig", {}),
    ("hybrid", {"p": 0.25}),
    ("oracle_anchor", {}),
]
ANCHORS = ([], [0], [1, 4], [2, 3, 7, 10, 40], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])  # slots; some beyond the end


def made(backbone, anchors=ANCHORS):
    """Prompts at random, and sources of which distractors are drawn."""
    rng = random.Random(backbone.family.name)
    prompts = [[rng.randrange(len(backbone.tokenizer)) for _ in range(rng.randrange(4, 20))] for _ in range(5)]
    sources = [f"{place} {'word ' * n}" for place, n in enumerate((4, 5, 5, 1, 6))]
    return in_prompts(prompts, backbone.context, sources, [1, 2], anchors)


def decoded(backbone, inputs, order, length, steps, schedule="floors", memo=None, ledger=None, reveals_masks=False):
    name, settings = order
    engine = Engine(backbone, ledger, budget=200, reveals_masks=reveals_masks)
    runner = Runner(lambda: engine, Ledger() if ledger is None else ledger, memo)
    denoising = Denoising.named(name, steps, schedule, settings)
    canvas = {"length": length, "candidates": [], "scores": []}
    results = denoised(runner, inputs, [canvas] * len(inputs.prompts), denoising)
    return [Sentences("", [], None, 0, mask=backbone.mask_id).written(one[length]) for one in results]


def plain(backbone, inputs, order, length, steps, mask_token=False):
    """The texts of the plain loops."""
    given = dict(order=order[0], mask_token=mask_token, **order[1])
    distractors = [inputs.prompts[inputs.distractors[place]] for place in range(len(inputs.prompts))]
    return [
        reference_authors.decode(backbone, prompt, length, steps, distractor=distractor, anchors=anchors, **given)[1]
        for prompt, distractor, anchors in zip(inputs.prompts, distractors, ANCHORS, strict=True)
    ]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_engine_is_the_plain_loops_token_for_token(backbone, order):
    inputs = made(backbone)
    for length, steps in PAIRS:
        expected = plain(backbone, inputs, order, length, steps)
        assert decoded(backbone, inputs, order, length, steps) == expected, (length, steps)
        if length <= steps:  # the steps that reveal nothing lie elsewhere, and no order knows
            assert decoded(backbone, inputs, order, length, steps, "llada") == expected, (length, steps)


def test_anchors_come_first_and_the_store_tells_them_apart(backbone, tmp_path):
    """Without anchors the order is MED; others of one canvas are another result."""
    inputs, order = made(backbone), ("oracle_anchor", {})
    without, everywhere = (made(backbone, [one] * 5) for one in ([], range(13)))
    with Store(tmp_path) as store:
        memo = Memo(store, "checkpoint", "numerics")
        texts = [decoded(backbone, one, order, 13, 13, memo=memo) for one in (without, everywhere)]
    assert texts == [decoded(backbone, inputs, (name, {}), 13, 13) for name in ("med", "left_to_right")]
    assert texts[0] != texts[1]


def test_an_order_of_anchors_needs_them(backbone):
    with pytest.raises(InputError, match="sentence 0 has no `anchors`"):
        decoded(backbone, made(backbone, [None] * 5), ("oracle_anchor", {}), 5, 5)


@pytest.mark.parametrize("order", [ORDERS[0], ORDERS[3], ORDERS[4]], ids=str)
def test_a_mask_token_that_may_be_revealed_is_masked_again_and_left_out_of_the_text(liable, order):
    inputs, differing = made(liable), 0
    for length, steps in PAIRS:
        expected = plain(liable, inputs, order, length, steps, mask_token=True)
        assert decoded(liable, inputs, order, length, steps, reveals_masks=True) == expected, (length, steps)
        differing += expected != plain(liable, inputs, order, length, steps)
    assert differing


def test_a_variable_length_decoder_ends_with_masks_that_it_has_revealed(liable):
    daedal = make_denoiser("daedal", {"eos_window": 1, "cap": 24})
    requests = [
        VariableLength(daedal, Canvas(prompt, length), 24) for prompt in made(liable).prompts for length in (5, 9)
    ]
    results = Runner(lambda: Engine(liable, reveals_masks=True), Ledger()).answers(requests)
    assert any(liable.mask_id in one.tokens for one in results)


@pytest.fixture
def liable(llada):
    """A backbone that takes the mask token for the most probable one now and then."""
    model = copy.deepcopy(llada.model)
    with torch.no_grad():
        model.lm_head.weight[llada.mask_id] *= 3
    return dataclasses.replace(llada, model=model)


def test_where_the_order_knows_t_it_is_part_of_the_name_in_the_store(llada, tmp_path):
    inputs, memo = made(llada), Memo(Store(tmp_path), "checkpoint", "numerics")
    for order, expected in ((ORDERS[1], [10, 0]), (ORDERS[3], [5, 5])):
        computed = []
        for steps in (16, 32):
            ledger = Ledger()
            decoded(llada, inputs, order, 8, steps, memo=memo, ledger=ledger)
            computed.append(ledger["computed"])
        assert computed == expected
