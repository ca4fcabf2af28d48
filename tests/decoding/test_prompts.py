"""Prompts that are not computed in every pass: exactly under prefix attention, else as the plain approximation."""

import dataclasses
import functools
import itertools
import random
import sys

import pytest
import reference_variants
import torch
from bench import canvas_of

from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Canvas, Queue, Reuse
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.reference import Step, hybrid
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.model.decoder import Decoder
from entropy_valley.model.prompt import PREFIX

PAIRS = tuple(itertools.product((1, 3, 8, 21), (2, 5, 24)))  # canvas length, step budget
NEVER = sys.maxsize
MED, HYBRID = ("med", {}), ("hybrid", {"p": 0.5, "sig": "stepwise_kl"})


@pytest.fixture(scope="module")
def prefix(backbone):
    return dataclasses.replace(backbone, attention=PREFIX)


@pytest.fixture(scope="module")
def cases(backbone):
    """Two canvases behind each of some prompts, in no order."""
    rng, drawn = random.Random(backbone.family.name), []
    for _ in range(len(PAIRS)):
        prompts = ([rng.randrange(len(backbone.tokenizer)) for _ in range(rng.randrange(2, 20))] for _ in range(2))
        drawn += [(*prompts, *rng.choice(PAIRS))] * 2
    rng.shuffle(drawn)
    return [
        canvas_of(prompt, length, steps, sourceless=sourceless)
        for (prompt, sourceless, *_), (length, steps) in zip(drawn, PAIRS * 2, strict=True)
    ]


def asked(cases, order, **changes):
    """The canvases as the order wants them."""
    sourceless = {} if order == HYBRID else {"sourceless": None}
    return [dataclasses.replace(case, **sourceless, **changes) for case in cases]


def fill(backbone, canvases, order=MED, budget=None, most=None, **options):
    engine = Engine(backbone, budget=budget, **options)
    engine.prompts.most = most or engine.prompts.most
    return dict(engine.run(Queue(enumerate(canvases), engine.prompts.are_shared), make_denoiser(*order))), engine


def rank(order):
    return functools.partial(hybrid, p=0.5) if order == HYBRID else Step.entropy


def require_same(filled, texts, mask_id):
    for place, (tokens, text) in enumerate(texts):
        ours = filled[place]
        assert ours.tokens[: ours.text] == text, place
        assert all(token in (mask_id, true) for token, true in zip(ours.tokens, tokens, strict=True))


@pytest.mark.parametrize("order", [MED, HYBRID], ids=["med", "hybrid"])
def test_under_prefix_attention_the_engine_is_the_plain_algorithm(prefix, cases, order):
    filled, _ = fill(prefix, asked(cases, order), order)
    texts = [
        reference.decode(prefix, it.prompt, it.length, steps, rank=rank(order), sourceless=it.sourceless)
        for it, (_, steps) in zip(cases, PAIRS * 2, strict=True)
    ]
    require_same(filled, texts, prefix.mask_id)


def test_under_prefix_attention_each_prompt_is_run_once(prefix, cases):
    canvases, shift = asked(cases, MED), int(prefix.shifted)
    filled, engine = fill(prefix, canvases, budget=150)
    prompts = {tuple(case.prompt) for case in canvases}
    rows = sum((case.length + shift) * filled[place].passes for place, case in enumerate(canvases))
    assert engine.ledger["tokens"] == rows + sum(len(prompt) - shift for prompt in prompts)
    assert engine.prompts.pool.size == 0 and not engine.prompts.cached  # all is given back


@pytest.mark.parametrize("refresh", [None, 3], ids=["prefix", "renewed"])
def test_a_result_is_bit_equal_in_any_company(backbone, prefix, cases, refresh, order=HYBRID):
    model, canvases = prefix if refresh is None else backbone, asked(cases, order, reuse=Reuse(refresh))
    whole, engine = fill(model, canvases, order)
    small, other = fill(model, canvases, order, budget=64)
    assert whole == small and engine.ledger["passes"] < other.ledger["passes"]
    assert engine.ledger["rows"] == other.ledger["rows"]
    assert whole == fill(model, canvases, order, most=40)[0]
    for place in (3, 7, 11):
        assert {0: whole[place]} == fill(model, [canvases[place]], order)[0]


@pytest.mark.parametrize("refresh", [2, NEVER])
@pytest.mark.parametrize("order", [MED, HYBRID], ids=["med", "hybrid"])
def test_a_renewed_prompt_is_the_plain_approximation(backbone, cases, order, refresh):
    filled, _ = fill(backbone, asked(cases, order, reuse=Reuse(refresh)), order, budget=200)
    texts = [
        reference_variants.decode_cached(
            backbone, it.prompt, it.length, steps, refresh, rank=rank(order), sourceless=it.sourceless
        )
        for it, (_, steps) in zip(cases, PAIRS * 2, strict=True)
    ]
    require_same(filled, texts, backbone.mask_id)


def test_exact_and_approximate_canvases_share_passes(backbone, cases):
    """None attends to what is kept for another that is computed otherwise, though the prompt is the same."""
    kinds = [
        asked(cases[::6], HYBRID),
        asked(cases[::6], HYBRID, reuse=Reuse(2)),
        asked(cases[::6], HYBRID, reuse=Reuse(NEVER)),
    ]
    kinds += [
        [Canvas(case.prompt, case.length + more, reuse=Reuse(beside=case.length)) for case in cases[::6]]
        for more in (1, 3)
    ]
    together, _ = fill(backbone, itertools.chain(*kinds), HYBRID, budget=300)
    apart = (fill(backbone, kind, HYBRID)[0] for kind in kinds)
    assert together == dict(enumerate(results[place] for results in apart for place in sorted(results)))


@pytest.mark.parametrize("budget", [40, 1000], ids=["apart", "together"])
def test_a_probe_beside_another_length_reads_its_prompt(backbone, budget):
    """Whether the other length is probed too, in the same pass or an earlier one, or not at all."""
    rng, canvases, expected = random.Random(4), {}, {}
    for number in range(6):
        prompt = [rng.randrange(len(backbone.tokenizer)) for _ in range(rng.randrange(3, 15))]
        other = rng.randrange(2, 20)
        canvases |= {(number, other): Canvas(prompt, other)} if number % 2 else {}
        for length in rng.sample([length for length in range(2, 20) if length != other], 3):
            canvases[number, length] = Canvas(prompt, length, reuse=Reuse(beside=other))
            expected[number, length] = reference_variants.read_cached(backbone, prompt, length, other)
    engine = Engine(backbone, budget=budget)
    readings = dict(engine.run(Queue(canvases.items())))
    for name, (entropies, tokens) in expected.items():
        assert list(readings[name].tokens) == tokens
        assert readings[name].entropies == pytest.approx(entropies, rel=1e-4, abs=1e-9)
    if budget == 1000:  # a length that is probed itself gives the rows: nothing is run twice
        sources = {(tuple(canvas.prompt), canvas.reuse.beside) for canvas in canvases.values() if canvas.reuse.beside}
        rows = sum(canvas.length + int(backbone.shifted) for canvas in canvases.values() if canvas.reuse.beside)
        assert engine.ledger["tokens"] == rows + sum(len(prompt) + length for prompt, length in sources)


@pytest.mark.parametrize("refresh", [None, 3], ids=["prefix", "renewed"])
def test_a_pass_without_memory_loses_nothing(backbone, prefix, cases, refresh, monkeypatch):
    model, canvases, failed = prefix if refresh is None else backbone, asked(cases, MED, reuse=Reuse(refresh)), []

    hidden_states = Decoder.hidden_states

    def scarce(model, packed, rows, *fill):
        if sum(packed.lengths) + packed.kept.pool.used > 160:
            failed.append(packed)
            raise torch.OutOfMemoryError("no memory for more than 160 rows, those that are kept included")
        return hidden_states(model, packed, rows, *fill)

    expected, _ = fill(model, canvases)
    monkeypatch.setattr(Decoder, "hidden_states", scarce)
    filled, engine = fill(model, canvases, budget=1000)
    assert filled == expected and len(failed) > 1
    assert engine.prompts.pool.size == 0


@pytest.mark.parametrize("refresh", [None, 2], ids=["prefix", "renewed"])
def test_what_is_kept_belongs_to_canvases_that_run_or_wait(backbone, prefix, cases, refresh, monkeypatch):
    model, canvases, most = prefix if refresh is None else backbone, asked(cases, MED, reuse=Reuse(refresh)), 60
    engine, seen, shift = Engine(model, budget=200), [], int(model.shifted)
    engine.prompts.most = most
    read = engine._read

    def watched(batch, order):
        result = read(batch, order)
        prompts = [tuple(canvas.prompt) for canvas in batch.canvases]
        kept = len(set(prompts)) if refresh is None else len(prompts)
        rows = sum(len(prompt) - shift for prompt in (set(prompts) if refresh is None else prompts))
        seen.append((engine.prompts.pool.used, rows, kept))
        return result

    monkeypatch.setattr(engine, "_read", watched)
    dict(engine.run(Queue(enumerate(canvases), engine.prompts.are_shared), make_denoiser("med")))
    assert all(used <= max(most, rows) for used, rows, _ in seen)
    assert any(kept > 1 for *_, kept in seen) and seen[-1][0] < most
