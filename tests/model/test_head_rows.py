"""The LM head runs on the rows that speak for the wanted tokens and on no other, in decoding and in training."""

from __future__ import annotations

import pytest
import torch

from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import make_denoiser
from entropy_valley.decoding.requests import Canvas, Queue
from entropy_valley.model.attention import hidden_states, pack
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone
from entropy_valley.training.loss import MicroBatch, cross_entropies

DIFFUSION = sorted(name for name, family in FAMILIES.items() if not family.causal)
PROMPTS, LENGTHS = ([6, 7, 8, 9, 10], [3, 4, 5]), (6, 4)
SLOTS = torch.tensor([*range(5, 11), *range(14, 18)])  # the rows of both canvases, each behind its prompt


def watched(tiny, name):
    """A backbone, and the states that its head is given, call by call; one that is no plain layer is always called."""
    backbone, calls = load_backbone(tiny[name][1], name), []
    backbone.model.lm_head.__class__ = type("Watched", (torch.nn.Linear,), {})
    backbone.model.lm_head.register_forward_pre_hook(lambda module, arguments: calls.append(arguments[0].detach()))
    return backbone, calls


def sequences(token):
    return [prompt + [token] * length for prompt, length in zip(PROMPTS, LENGTHS, strict=True)]


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_loss_reads_the_rows_of_its_labels(tiny, name):
    backbone, read = watched(tiny, name)
    batch = MicroBatch(pack(sequences(11)), SLOTS, torch.zeros_like(SLOTS), torch.ones(len(SLOTS)))
    cross_entropies(backbone.model, batch, backbone.shifted)
    (states,) = read
    expected = hidden_states(backbone.model, batch.packed)[SLOTS - int(FAMILIES[name].shifted)]
    torch.testing.assert_close(states, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", DIFFUSION)
def test_a_probe_reads_the_masked_slots(tiny, name):
    backbone, read = watched(tiny, name)
    list(Engine(backbone).run(Queue(enumerate(map(Canvas, PROMPTS, LENGTHS)))))
    states = hidden_states(backbone.model, pack(sequences(backbone.mask_id)))
    torch.testing.assert_close(torch.cat(read), states[SLOTS - int(FAMILIES[name].shifted)], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", DIFFUSION)
def test_a_step_reads_what_is_still_masked(tiny, name):
    backbone, read = watched(tiny, name)
    engine = Engine(backbone)
    list(engine.run(Queue([("it", Canvas(PROMPTS[0], 12, [2, 3, 1, 2, 4]))]), make_denoiser("med")))
    rows = [len(states) for states in read]
    assert len(rows) > 1 and rows == [12, 10, 7, 6, 4][: len(rows)]
    assert sum(rows) == engine.ledger.rows
