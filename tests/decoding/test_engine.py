"""The engine against the plain algorithm: every reveal order, what a probe reads, company, known readings, memory."""

import copy
import dataclasses
import functools
import random

import pytest
import reference_variants
import torch
from bench import canvas_of

from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Queue
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import needs_sourceless
from entropy_valley.decoding.reference import RANKS
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.model.decoder import Decoder

PAIRS = ((1, 2), (2, 6), (5, 5), (8, 3), (13, 5), (21, 8))  # canvas length, step budget
STEPWISE = {"sig": "stepwise_kl"}
ORDERS = [
    ("med", {}),
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
    """Canvases with L < T, L = T and L > T."""
    rng = random.Random(backbone.family.name)
    return [case(backbone, rng, length, steps) for length, steps in PAIRS]


def case(backbone, rng, length, steps):
    prompts = ([rng.randrange(len(backbone.tokenizer)) for _ in range(rng.randrange(4, 20))] for _ in range(2))
    return canvas_of(next(prompts), length, steps, sourceless=next(prompts))


def fill(backbone, canvases, order=("med", {}), **options):
    engine = Engine(backbone, **options)
    return dict(engine.run(Queue(enumerate(canvases)), make_denoiser(*order))), engine.ledger


def probe(backbone, canvases, budget=None):
    """Both readings of each canvas, or that behind the source alone where it has no other prompt."""
    read = [dataclasses.replace(canvas, counts=()) for canvas in canvases]
    return dict(Engine(backbone, budget=budget).run(Queue(enumerate(read))))


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
    for lookahead in (0, 4):  # guesses are not counted
        guessed, its_ledger = fill(llada, canvases, order, lookahead=lookahead)
        assert guessed == whole
        assert (its_ledger["tokens"], its_ledger["rows"]) == (ledger["tokens"], ledger["rows"])
    tokens = rows = 0
    for place, canvas in enumerate(canvases):
        passes = whole[place].passes
        masked = [canvas.length - sum(canvas.counts[:step]) for step in range(passes)]
        extra = sum(needs_sourceless(made, step, len(canvas.counts)) for step in range(passes))
        tokens += passes * (len(canvas.prompt) + canvas.length) + extra * (len(canvas.sourceless) + canvas.length)
        rows += sum(masked) + sum(masked[passes - extra :])
    assert (ledger["tokens"], ledger["rows"]) == (small_ledger["tokens"], small_ledger["rows"]) == (tokens, rows)
    readings = probe(llada, canvases)
    begun = [dataclasses.replace(canvas, start=readings[place]) for place, canvas in enumerate(canvases)]
    reused, cheaper = fill(llada, begun, order)
    assert reused == whole
    saved = [canvas for canvas in canvases if not needs_sourceless(made, 0, len(canvas.counts))]
    assert ledger["tokens"] - cheaper["tokens"] == sum(len(canvas.prompt) + canvas.length for canvas in saved)


def test_a_probe_reads_what_the_reference_reads_without_the_source_too(backbone, cases):
    alone = probe(backbone, [dataclasses.replace(canvas, sourceless=None) for canvas in cases], budget=100)
    for place, reading in probe(backbone, cases).items():
        canvas, seen = cases[place], []

        def look(step, seen=seen):
            seen.append(step.sig().tolist())
            return step.entropy()

        entropies, best = reference.read(backbone, canvas.prompt, [backbone.mask_id] * canvas.length)
        reference.decode(backbone, canvas.prompt, canvas.length, 1, rank=look, sourceless=canvas.sourceless)
        assert reading.sigs == pytest.approx(seen[0], rel=1e-3, abs=1e-9) and alone[place].sigs == ()
        for one in (reading, alone[place]):
            assert list(one.tokens) == best and max(one.logprobs) <= 0
            assert one.entropies == pytest.approx(entropies, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(("length", "block", "steps"), [(12, 4, 6), (12, 3, 12), (8, 8, 2)])
def test_blocks_by_confidence_are_lladas_own_generate(llada, length, block, steps):
    prompt = [5, 9, 13, 7]
    filled, _ = fill(llada, [canvas_of(prompt, length, steps)], ("blocks", {"block_length": block, "by": "confidence"}))
    tokens = reference_variants.generate(llada, prompt, length, block, steps)
    ours = filled[0].tokens
    assert ours[: filled[0].text] == tokens[: filled[0].text]
    assert all(token in (llada.mask_id, true) for token, true in zip(ours, tokens, strict=True))


@pytest.mark.parametrize("order", [ORDERS[0], ORDERS[1]], ids=str)
def test_embeddings_that_are_no_token_are_never_predicted(backbone, cases, order):
    """A model with more of them than its tokenizer has tokens, as most released ones are: they would win here."""
    model, more = copy.deepcopy(backbone.model), torch.nn.Linear(32, 40, bias=False)
    more.weight = torch.nn.Parameter(torch.cat([backbone.model.lm_head.weight, *[9 * model.lm_head.weight] * 40]))
    model.lm_head = more
    padded = dataclasses.replace(backbone, model=model)
    filled, expected = (fill(one, cases, order)[0] for one in (padded, backbone))
    assert {place: one.tokens for place, one in filled.items()} == {n: one.tokens for n, one in expected.items()}
    decoded = [reference.decode(one, cases[0].prompt, *PAIRS[0]) for one in (padded, backbone)]
    assert decoded[0] == decoded[1]


def test_logprob_is_the_mean_at_reveal_time_before_the_eos(llada):
    rng = random.Random(5)
    canvases = [case(llada, rng, length, 1) for length in range(2, 30)]  # one step: reveal time is the probe
    readings, texts = probe(llada, canvases), set()
    for place, result in fill(llada, canvases)[0].items():
        logprobs = readings[place].logprobs[: result.text]
        assert result.logprob == (round(sum(logprobs) / result.text, 4) if result.text else None)
        texts.add(min(result.text, 1))
    assert texts == {0, 1}


def test_a_pass_without_memory_is_halved_and_nothing_is_lost(backbone, monkeypatch):
    rng, sizes, hidden_states = random.Random(4), [], Decoder.hidden_states
    canvases = [case(backbone, rng, length, steps) for length in (1, 3, 8, 13, 21, 34) for steps in (2, 5, 8, 32)]

    def scarce(model, packed, rows, *fill):
        sizes.append(sum(packed.lengths))
        if sizes[-1] > 100:
            raise torch.OutOfMemoryError("no memory for more than 100 rows")
        return hidden_states(model, packed, rows, *fill)

    expected, _ = fill(backbone, canvases)
    monkeypatch.setattr(Decoder, "hidden_states", scarce)
    filled, ledger = fill(backbone, canvases, budget=1000)
    assert filled == expected
    failed = [size for size in sizes if size > 100]
    assert 3 <= len(failed) < 9 and len(sizes) == ledger["passes"] + len(failed)


def test_one_canvas_without_memory_is_an_error(llada, monkeypatch):
    def none(*given):
        raise torch.OutOfMemoryError("no memory at all")

    monkeypatch.setattr(Decoder, "hidden_states", none)
    with pytest.raises(torch.OutOfMemoryError, match="no memory at all"):
        fill(llada, [case(llada, random.Random(4), 9, 4)] * 8)


def test_the_reference_reveals_what_it_says(llada, monkeypatch):
    """Worked by hand: two slots, entropies chosen so that the second is revealed first."""

    class Model(torch.nn.Module):
        dtype, device = torch.float32, "cpu"

        def forward(self, input_ids, attention_mask, use_cache):
            assert attention_mask.shape == (1, 1, 3, 3) and not attention_mask.any()
            sure, first = torch.tensor([0.0, 9, 0, 0]), torch.tensor([0.0, 0, 1, 5])
            if (input_ids[0, 1:] == 3).all():
                return type("Output", (), {"logits": torch.stack([first, first, sure])[None]})
            assert input_ids[0].tolist() == [2, 3, 1]  # slot 1 was revealed first
            return type("Output", (), {"logits": torch.stack([first, first, first])[None]})

    monkeypatch.setattr(reference, "stock_model", lambda family, model: model)
    fake = dataclasses.replace(llada, model=Model(), mask_id=3, eos_id=1)
    assert reference.decode(fake, [2], 2, 2) == ([2, 1], [2])
