from __future__ import annotations

import random

import pytest
import torch
from reference_variants import CachedPrompt, decode_cached, read_cached

from entropy_valley.decoding import reference
from entropy_valley.decoding.reference import hybrid

PROMPT, OTHER = [5, 9, 12, 7, 30, 4], [8, 11, 2]


def test_renewed_in_each_pass_it_is_the_plain_algorithm(backbone):
    for length, steps in ((1, 4), (5, 8), (9, 4), (13, 32)):
        cached = decode_cached(backbone, PROMPT, length, steps, 1, rank=hybrid(0.5), sourceless=OTHER)
        assert cached == reference.decode(backbone, PROMPT, length, steps, rank=hybrid(0.5), sourceless=OTHER)


def test_a_canvas_reads_as_in_the_whole_pass_over_it_and_no_other_does(backbone):
    rng, kept = random.Random(1), CachedPrompt(backbone, PROMPT)
    one, other = ([rng.randrange(len(backbone.tokenizer)) for _ in range(length)] for length in (7, 9))
    exact = kept.whole(one)
    torch.testing.assert_close(exact, reference.slot_logits(backbone, PROMPT, one))
    beside = kept.slots(other)
    assert beside.shape == (9, exact.shape[1])
    assert (beside - reference.slot_logits(backbone, PROMPT, other))[:, 0].abs().max() > 1e-4
    torch.testing.assert_close(kept.slots(one), exact)  # what stands between has changed nothing that is kept


def test_the_rows_of_a_probe_may_come_from_another_length(backbone):
    masks = [backbone.mask_id] * 6
    entropies, tokens = read_cached(backbone, PROMPT, 6, beside=6)
    exact, best = reference.read(backbone, PROMPT, masks)
    assert (entropies, tokens) == (pytest.approx(exact, rel=1e-5), best)
    assert read_cached(backbone, PROMPT, 6, beside=3)[0] != pytest.approx(exact, rel=1e-5)
