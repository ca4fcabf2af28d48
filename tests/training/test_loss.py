from __future__ import annotations

import itertools

import pytest
import torch
from tiny_training import canvases_of

from entropy_valley.model.attention import hidden_states, pack
from entropy_valley.training import data
from entropy_valley.training.loss import Passes, cross_entropies

READINGS = list(itertools.product(("1/t", "none"), ("token", "sequence", "masked")))


def naive(backbone, canvases, step, weight, normaliser):
    """The loss of protocol.md, one sentence and one token at a time, and the mean CE."""
    indices, random = canvases.order[step], data.stream(canvases.seed, "canvas", step)
    layout = data.lay_out(canvases.pairs, indices, torch.zeros_like(indices))
    times = data.draw_times(len(indices), random, eps=1e-3)
    masks = data.draw_masks(times, layout.targets, random).split(layout.targets.tolist())
    total, slots, entropies = 0.0, 0, []
    for tokens, time, mask in zip(layout.tokens.split(layout.lengths.tolist()), times, masks, strict=True):
        prompt = len(tokens) - len(mask)
        corrupted = tokens.clone()
        corrupted[prompt:][mask] = backbone.mask_id
        logits = backbone.model.lm_head(hidden_states(backbone.model, pack([corrupted.tolist()])))
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


def test_the_shift_reads_the_row_before(load):
    backbone = load("dream")
    (part,) = canvases_of(backbone)[0]
    assert not torch.allclose(cross_entropies(backbone.model, part, True), cross_entropies(backbone.model, part, False))
