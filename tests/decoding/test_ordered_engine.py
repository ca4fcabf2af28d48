"""Every reveal order in the engine is the plain algorithm's, the source-free pass in the same batch."""

from __future__ import annotations

import dataclasses
import functools
import random

import pytest
import reference_variants

from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Canvas, Queue
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import needs_sourceless, reveal_counts
from entropy_valley.decoding.reference import RANKS
from entropy_valley.decoding.requests import make_denoiser

PAIRS = ((1, 2), (2, 6), (5, 5), (8, 3), (13, 5), (21, 8))  # canvas length, step budget
STEPWISE = {"sig": "stepwise_kl"}
ORDERS = [
    ("sig_first", STEPWISE),
    ("reverse_sig", STEPWISE),
    ("entropy_weighted_sig", STEPWISE),
    ("hybrid", {"p": 0.25, **STEPWISE}),
    ("hybrid", {"p": 0.75, **STEPWISE}),
    ("left_to_right", {}),
    ("blocks", {"block_length": 3}),
    ("blocks", {"block_length": 4, "by": "confidence"}),
    ("random", {"seed": 3}),
]


@pytest.fixture(scope="module")
def cases(backbone):
    rng = random.Random(backbone.family.name)
    return [case(backbone, rng, length, steps) for length, steps in PAIRS]


def case(backbone, rng, length, steps):
    prompts = ([rng.randrange(len(backbone.tokenizer)) for _ in range(rng.randrange(4, 20))] for _ in range(2))
    prompt, sourceless = prompts
    counts = [count for count in reveal_counts(length, steps) if count]
    return Canvas(prompt, length, counts, sourceless=sourceless)


def fill(backbone, canvases, order, budget=None):
    engine = Engine(backbone, budget=budget)
    return dict(engine.run(Queue(enumerate(canvases)), make_denoiser(*order))), engine.ledger


def probe(backbone, canvases):
    return dict(Engine(backbone).run(Queue(enumerate(dataclasses.replace(case, counts=()) for case in canvases))))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_engine_is_the_plain_algorithm_token_for_token(backbone, cases, order):
    filled, _ = fill(backbone, cases, order)
    for place, (canvas, (length, steps)) in enumerate(zip(cases, PAIRS, strict=True)):
        settings = {name: value for name, value in order[1].items() if name != "sig"}
        rank = functools.partial(RANKS[order[0]], **settings)
        tokens, text = reference.decode(backbone, canvas.prompt, length, steps, rank=rank, sourceless=canvas.sourceless)
        ours = filled[place]
        assert ours.tokens[: ours.text] == text, (place, length, steps)
        assert all(token in (backbone.mask_id, true) for token, true in zip(ours.tokens, tokens, strict=True))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_results_and_counts_are_the_same_in_any_company_and_from_known_readings(llada, order):
    """Each source-free pass is counted and no other; a reading is the first step unless the SIG is looked at there."""
    rng, made = random.Random(1), make_denoiser(*order)
    canvases = [case(llada, rng, length, steps) for length, steps in PAIRS * 2]
    whole, ledger = fill(llada, canvases, order)
    small, small_ledger = fill(llada, canvases, order, budget=90)
    assert whole == small and ledger["passes"] < small_ledger["passes"]
    assert {0: whole[11]} == fill(llada, canvases[11:], order)[0]
    tokens = rows = 0
    for place, canvas in enumerate(canvases):
        passes = whole[place].passes
        masked = [canvas.length - sum(canvas.counts[:step]) for step in range(passes)]
        extra = sum(needs_sourceless(made, step, len(canvas.counts)) for step in range(passes))
        tokens += passes * canvas.size + extra * (len(canvas.sourceless) + canvas.length)
        rows += sum(masked) + sum(masked[passes - extra :])
    assert (ledger["tokens"], ledger["rows"]) == (small_ledger["tokens"], small_ledger["rows"]) == (tokens, rows)
    readings = probe(llada, canvases)
    begun = [dataclasses.replace(canvas, start=readings[place]) for place, canvas in enumerate(canvases)]
    reused, cheaper = fill(llada, begun, order)
    assert reused == whole
    saved = [canvas for canvas in canvases if not needs_sourceless(made, 0, len(canvas.counts))]
    assert ledger["tokens"] - cheaper["tokens"] == sum(canvas.size for canvas in saved)


def test_a_reading_without_the_source_too_has_the_sig_that_the_reference_has(backbone, cases):
    alone = probe(backbone, [dataclasses.replace(canvas, sourceless=None) for canvas in cases])
    for place, reading in probe(backbone, cases).items():
        canvas, seen = cases[place], []

        def look(step, seen=seen):
            seen.append(step.sig().tolist())
            return step.entropy()

        reference.decode(backbone, canvas.prompt, canvas.length, 1, rank=look, sourceless=canvas.sourceless)
        assert reading.sigs == pytest.approx(seen[0], rel=1e-3, abs=1e-9)
        assert reading.tokens == alone[place].tokens and alone[place].sigs == ()
        assert reading.entropies == pytest.approx(alone[place].entropies, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(("length", "block", "steps"), [(12, 4, 6), (12, 3, 12), (8, 8, 2)])
def test_blocks_by_confidence_are_lladas_own_generate(llada, length, block, steps):
    prompt = [5, 9, 13, 7]
    canvas = Canvas(prompt, length, reveal_counts(length, steps))
    filled, _ = fill(llada, [canvas], ("blocks", {"block_length": block, "by": "confidence"}))
    tokens = reference_variants.generate(llada, prompt, length, block, steps)
    ours = filled[0].tokens
    assert ours[: filled[0].text] == tokens[: filled[0].text]
    assert all(token in (llada.mask_id, true) for token, true in zip(ours, tokens, strict=True))
