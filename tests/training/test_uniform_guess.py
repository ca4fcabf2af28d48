"""What a model that gives every token the same probability would read in ``losses.csv``."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_training import canvases_of

from entropy_valley.tables.dream_instruct import uniform_cross_entropy
from entropy_valley.training import data
from entropy_valley.training import loss as canvases
from entropy_valley.training.loss import Passes, cross_entropies
from entropy_valley.training.settings import Loss

SEQUENCES = 20_000  # one batch of them tells an expectation to 1 %: the masking rates are antithetic


def canvases_of_length(targets, **loss):
    """A batch of sequences that all have a prompt of one token and so many targets."""
    lengths = torch.full((SEQUENCES,), 1 + targets)
    tokens = torch.zeros(int(lengths.sum()), dtype=torch.int32)
    pairs = data.Pairs(tokens, lengths.cumsum(0) - lengths, torch.ones_like(lengths), lengths, 0)
    return canvases.Canvases(pairs, data.Batches(lengths, SEQUENCES, 1), Loss(**loss), mask_id=1, seed=1)


@pytest.mark.parametrize("normaliser", ["token", "sequence"])
@pytest.mark.parametrize(("targets", "factor"), [(5, 1.93), (16, 1.22)])
def test_its_weighted_loss_is_not_log_of_the_vocabulary_even_on_average(targets, factor, normaliser):
    (part,) = canvases_of_length(targets, normaliser=normaliser)[0]
    t = np.linspace(1e-3, 1, 1_000_001)
    expected = 1 + ((1 - t) ** targets / (targets * t)).mean()  # in units of log|V|, as in the docstring
    assert expected == pytest.approx(factor, abs=0.005)
    assert part.weights.sum().item() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("switches", [{}, {"weight": "none"}, {"time": "minibatch", "eos_padding": "batch"}])
@torch.inference_mode()
def test_its_cross_entropy_is_log_of_the_vocabulary_at_every_step(load, switches):
    backbone = load()
    backbone.model.lm_head.weight.zero_()
    batches = canvases_of(backbone, passes=Passes(ranks=2), **switches)
    for step in range(len(batches.order)):
        entropies = torch.cat([cross_entropies(backbone.model, part, backbone.shifted) for part in batches[step]])
        log = uniform_cross_entropy(backbone.model.config.vocab_size)  # the size that adapter.json has
        assert entropies.mean().item() == pytest.approx(log, rel=1e-6)
