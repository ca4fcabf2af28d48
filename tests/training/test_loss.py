"""The loss: against one token at a time, in any cut into passes, and of a model that knows nothing."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_training import canvases_of

from entropy_valley.experiment.tables.dream_instruct import uniform_cross_entropy
from entropy_valley.model.attention import pack
from entropy_valley.training.loss import (
    Batches,
    Canvases,
    Pairs,
    Passes,
    cross_entropies,
    draw_masks,
    draw_times,
    lay_out,
    stream,
)
from entropy_valley.training.settings import Loss

READINGS = list(itertools.product(("1/t", "none"), ("token", "sequence", "masked")))


def naive(backbone, canvases, step, weight, normaliser):
    """The loss of protocol.md, one sentence and one token at a time, and the mean CE."""
    indices, random = canvases.order[step], stream(canvases.seed, "canvas", step)
    layout = lay_out(canvases.pairs, indices, torch.zeros_like(indices))
    times = draw_times(len(indices), random, eps=1e-3)
    masks = draw_masks(times, layout.targets, random).split(layout.targets.tolist())
    total, slots, entropies = 0.0, 0, []
    for tokens, time, mask in zip(layout.tokens.split(layout.lengths.tolist()), times, masks, strict=True):
        prompt = len(tokens) - len(mask)
        corrupted = tokens.clone()
        corrupted[prompt:][mask] = backbone.mask_id
        logits = backbone.model.lm_head(backbone.model.hidden_states(pack([corrupted.tolist()])))
        losses = []
        for slot in mask.nonzero()[:, 0].tolist():
            row = logits[prompt + slot - int(backbone.shifted)]
            losses.append(-row.log_softmax(-1)[tokens[prompt + slot]].item())
        scale = 1 / time.item() if weight == "1/t" else 1.0
        total += sum(losses) * scale / (len(mask) * len(indices) if normaliser == "sequence" else 1)
        slots += {"token": len(mask), "masked": len(losses), "sequence": 0}[normaliser]
        entropies += losses
    return total / (slots or 1), sum(entropies) / len(entropies)


@pytest.mark.parametrize("family", ["llada", "dream"])
@pytest.mark.parametrize(("weight", "normaliser"), READINGS)
@torch.inference_mode()
def test_packed_and_cut_equals_token_by_token(load, family, weight, normaliser):
    backbone = load(family)
    canvases = canvases_of(backbone, passes=Passes(ranks=3), weight=weight, normaliser=normaliser)
    for step in range(len(canvases.order)):  # the last batch is short
        losses, weights = [], []
        for part in canvases[step]:
            if len(part):
                losses.append(cross_entropies(backbone.model, part, backbone.shifted))
                weights.append(part.weights)
        expected, mean = naive(backbone, canvases, step, weight, normaliser)
        assert (torch.cat(losses) @ torch.cat(weights)).item() == pytest.approx(expected, rel=1e-5)
        assert torch.cat(losses).mean().item() == pytest.approx(mean, rel=1e-5)


LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=40).map(lambda lengths: torch.tensor(sorted(lengths)))


def costs(lengths, sizes):
    """The tokens of each part."""
    return [int(part.sum()) for part in lengths.split(sizes)]


def fits(lengths, sizes, limit):
    return all(size <= 1 or cost <= limit for size, cost in zip(sizes, costs(lengths, sizes), strict=True))


@given(LENGTHS, st.integers(1, 200), st.integers(1, 4))
def test_parts_hold_the_budget_and_each_sequence_once(lengths, tokens, ranks):
    sizes = Passes(tokens, ranks).sizes(lengths)
    assert sum(sizes) == len(lengths) and len(sizes) % ranks == 0
    assert fits(lengths, sizes, tokens)
    assert sizes == sorted(sizes, reverse=True)  # what is empty comes last


@given(LENGTHS.filter(lambda lengths: len(lengths) < 9), st.integers(1, 120), st.integers(1, 3))
def test_no_cut_has_fewer_rounds_or_a_smaller_largest_part(lengths, tokens, ranks):
    sizes = Passes(tokens, ranks).sizes(lengths)
    largest = max(costs(lengths, sizes))
    for cuts in range(len(sizes)):
        for places in itertools.combinations(range(1, len(lengths)), cuts):
            other = [end - start for start, end in itertools.pairwise([0, *places, len(lengths)])]
            if fits(lengths, other, tokens):
                assert -(-len(other) // ranks) == len(sizes) // ranks
                assert max(costs(lengths, other)) >= largest


SEQUENCES = 20_000  # one batch of them tells an expectation to 1 %: the masking rates are antithetic


def canvases_of_length(targets, **loss):
    """A batch of sequences that all have a prompt of one token and so many targets."""
    lengths = torch.full((SEQUENCES,), 1 + targets)
    tokens = torch.zeros(int(lengths.sum()), dtype=torch.int32)
    pairs = Pairs(tokens, lengths.cumsum(0) - lengths, torch.ones_like(lengths), lengths, 0)
    return Canvases(pairs, Batches(lengths, SEQUENCES, 1), Loss(**loss), mask_id=1, seed=1)


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
