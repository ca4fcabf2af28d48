from __future__ import annotations

import copy
import dataclasses
import itertools
import random

import pytest
import torch

from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Canvas, Queue
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.model.decoder import Decoder
from entropy_valley.model.load import load_backbone

LENGTHS, STEPS = (1, 2, 3, 5, 8, 13, 21, 34), (1, 2, 5, 8, 32)


def canvas(backbone, rng, length, steps):
    prompt = [rng.randrange(len(backbone.tokenizer)) for _ in range(rng.randrange(4, 20))]
    return Canvas(prompt, length, [count for count in reveal_counts(length, steps) if count])


@pytest.fixture(scope="module", params=["diffullama", "dream", "llada"])
def backbone(checkpoints, request):
    """A backbone of each architecture and shift."""
    return load_backbone(checkpoints / request.param, request.param)


@pytest.fixture(scope="module")
def cases(backbone):
    """Canvases with L < T, L = T and L > T, in no order, and the step budget of each."""
    rng = random.Random(backbone.family.name)
    pairs = list(itertools.product(LENGTHS, STEPS))
    rng.shuffle(pairs)
    return [(canvas(backbone, rng, length, steps), steps) for length, steps in pairs]


def fill(backbone, canvases, **options):
    engine = Engine(backbone, **options)
    return dict(engine.run(Queue(enumerate(canvases)), make_denoiser("med"))), engine.ledger


def probe(backbone, canvases, budget=None):
    return dict(Engine(backbone, budget=budget).run(Queue(enumerate(as_probes(canvases)))))


def as_probes(canvases):
    return [dataclasses.replace(case, counts=()) for case in canvases]


def test_the_engine_is_the_plain_algorithm_token_for_token(backbone, cases):
    filled, _ = fill(backbone, [case for case, _ in cases])
    settled = 0
    for place, (case, steps) in enumerate(cases):
        tokens, text = reference.decode(backbone, case.prompt, case.length, steps)
        ours = filled[place]
        assert ours.tokens[: ours.text] == text, (place, case.length, steps)
        assert all(token in (backbone.mask_id, true) for token, true in zip(ours.tokens, tokens, strict=True))
        assert ours.passes <= min(case.length, steps)
        if backbone.mask_id in ours.tokens:
            settled += 1
        else:
            assert ours.tokens == tokens
    assert settled  # the case that stops early was there


@pytest.mark.parametrize("order", ["med", "sig_first"])
def test_embeddings_that_are_no_token_are_never_predicted(backbone, cases, order):
    """A model with more of them than its tokenizer has tokens, as most released ones are: they would win here."""
    model, settings = copy.deepcopy(backbone.model), {"sig": "stepwise_kl"} if order == "sig_first" else {}
    more = torch.nn.Linear(32, 40, bias=False)
    more.weight = torch.nn.Parameter(torch.cat([backbone.model.lm_head.weight, *[9 * model.lm_head.weight] * 40]))
    model.lm_head = more
    canvases = [dataclasses.replace(case, sourceless=case.prompt[:2]) for case, _ in cases[:12]]
    padded = dataclasses.replace(backbone, model=model)
    filled = []
    for one in (backbone, padded):
        results = dict(Engine(one).run(Queue(enumerate(canvases)), make_denoiser(order, settings)))
        filled.append({place: result.tokens for place, result in results.items()})
    assert filled[0] == filled[1]
    case, steps = cases[0]
    tokens, _ = reference.decode(padded, case.prompt, case.length, steps)
    assert tokens == reference.decode(backbone, case.prompt, case.length, steps)[0]


def test_a_probe_reads_what_the_reference_reads(backbone, cases):
    canvases = [case for case, _ in cases[:20]]
    for place, reading in probe(backbone, canvases, budget=100).items():
        case = canvases[place]
        entropies, best = reference.read(backbone, case.prompt, [backbone.mask_id] * case.length)
        assert list(reading.tokens) == best
        assert reading.entropies == pytest.approx(entropies, rel=1e-4, abs=1e-9)
        assert max(reading.logprobs) <= 0


def test_logprob_is_the_mean_at_reveal_time_before_the_eos(llada):
    rng = random.Random(5)
    canvases = [canvas(llada, rng, length, 1) for length in range(2, 30)]  # one step: reveal time is the probe
    readings, texts = probe(llada, canvases), set()
    for place, result in fill(llada, canvases)[0].items():
        logprobs = readings[place].logprobs[: result.text]
        assert result.logprob == (round(sum(logprobs) / result.text, 4) if result.text else None)
        texts.add(min(result.text, 1))
    assert texts == {0, 1}


def test_the_head_reads_what_is_still_masked_and_no_other_row(backbone):
    """A head that is no plain layer is always called."""
    model, read = copy.deepcopy(backbone.model), []
    model.lm_head.__class__ = type("Watched", (torch.nn.Linear,), {})
    model.lm_head.register_forward_pre_hook(lambda module, arguments: read.append(len(arguments[0])))
    seen = set()
    for first in range(5, 15):
        read.clear()
        canvases = [Canvas([first, 7, 8], 12, [2, 3, 1, 2, 4])]
        _, ledger = fill(dataclasses.replace(backbone, model=model), canvases, lookahead=0)
        assert read == [12, 10, 7, 6, 4][: len(read)] and sum(read) == ledger["rows"]
        seen.add(len(read))
    assert max(seen) > 1


def test_a_pass_without_memory_is_halved_and_nothing_is_lost(backbone, cases, monkeypatch):
    canvases, sizes = [case for case, _ in cases], []

    hidden_states = Decoder.hidden_states

    def scarce(model, packed, rows, *fill):
        sizes.append(sum(packed.lengths))
        if sizes[-1] > 100:
            raise torch.OutOfMemoryError("no memory for more than 100 rows")
        return hidden_states(model, packed, rows, *fill)

    expected, _ = fill(backbone, canvases)
    with monkeypatch.context() as patch:
        patch.setattr(Decoder, "hidden_states", scarce)
        filled, ledger = fill(backbone, canvases, budget=1000)
    assert filled == expected
    failed = [size for size in sizes if size > 100]
    assert 3 <= len(failed) < 9 and len(sizes) == ledger["passes"] + len(failed)


def test_one_canvas_without_memory_is_an_error(llada, monkeypatch):
    def none(*given):
        raise torch.OutOfMemoryError("no memory at all")

    monkeypatch.setattr(Decoder, "hidden_states", none)
    rng = random.Random(4)
    with pytest.raises(torch.OutOfMemoryError, match="no memory at all"):
        fill(llada, [canvas(llada, rng, 9, 4) for _ in range(8)])


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
