"""A length for anybody's model: by a function from ids to logits, the canvases of the engine."""

from __future__ import annotations

import pytest
import torch
from tiny_checkpoints import SOURCES

from entropy_valley import InputError, Translator, choose_length, make_method
from entropy_valley.model.load import stock_model
from entropy_valley.model.prompt import Prompt

RATIOS = {"ratios": [0.6, 0.8, 1.0, 1.2]}


def of_stock(backbone):
    """The logits of the stock class, whose rows all see one another."""
    model = stock_model(backbone.family, backbone.model)
    return lambda ids: model(input_ids=ids, attention_mask=torch.zeros(1, 1, ids.shape[1], ids.shape[1]))


def chosen(backbone, logits_of, prompt, source, method):
    return choose_length(
        logits_of,
        prompt.encode(source),
        method,
        mask_id=backbone.mask_id,
        eos_id=backbone.eos_id,
        shifted=backbone.shifted,
        source_tokens=len(prompt.tokens(source)),
    )


@pytest.mark.parametrize("method", ["ev", "ratio"])
def test_the_choices_are_the_translators(backbone, method):
    prompt = Prompt("{src} = ", backbone.tokenizer)
    method = make_method(method, RATIOS if method == "ev" else {"ratios": 0.8})
    logits_of = of_stock(backbone)
    for source, ours in zip(
        SOURCES, Translator(backbone, prompt, method, steps=1).translate(SOURCES[:6]), strict=False
    ):
        mine = chosen(backbone, logits_of, prompt, source, method)
        assert (mine.canvas, mine.scores.keys()) == (ours.canvas, ours.scores.keys())
        for slots, reading in ours.readings.items():
            assert mine.readings[slots].tokens == reading.tokens
            assert mine.readings[slots].entropies == pytest.approx(reading.entropies, abs=1e-4)


def test_candidate_lengths_are_enough(llada):
    prompt = Prompt("{src} = ", llada.tokenizer)
    mine = chosen(llada, of_stock(llada), prompt, SOURCES[0], [5, 7, 9])
    assert [*mine.entropies] == [5, 7, 9] and mine.canvas == min(mine.entropies, key=mine.entropies.get)


@pytest.mark.parametrize(
    ("logits_of", "method", "problem"),
    [
        (lambda ids: torch.zeros(ids.shape[1], 9), [], "lengths = .* at least 1 item"),
        (lambda ids: torch.zeros(ids.shape[1], 9), [1, 4], "lengths.0 = 1: must be greater than or equal to 2"),
        (lambda ids: torch.zeros(3, 9), [4], r"returns \(3, 9\) for 6 ids"),
        (lambda ids: torch.full((1, ids.shape[1], 9), torch.nan), [4], "returns NaN"),
        (None, make_method("oracle", {}), "needs the reference"),
    ],
)
def test_what_cannot_be_read_is_named(logits_of, method, problem):
    with pytest.raises(InputError, match=problem):
        choose_length(logits_of, [1, 2], method, mask_id=3, eos_id=4)
