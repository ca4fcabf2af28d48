"""Decoders that change the canvas: by hand, and against their plainest form."""

import math
import random
from typing import NamedTuple

import pytest
import reference_variants
from bench import canvases as chosen_canvases
from bench import in_prompts, without_store

from entropy_valley.decoding.canvas import Canvas, ProbeResult
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.requests import Probe, Runner, VariableLength, make_denoiser
from entropy_valley.decoding.variable_length import Guess, Revealed
from entropy_valley.lengths import Sentence, make_method

EOS = 1


def guess(chance, token=7, eos=0.01):
    return Guess(token, math.log(chance), math.log(chance if token == EOS else eos))


def text(slots):
    """The canvas as a test reads it: tokens, and None for a mask."""
    return [slot and slot.token for slot in slots]


def after(decoder, seen, step=0, most=100):
    return text(decoder.advance(seen, EOS, step, most))


class TestDaedal:
    decoder = make_denoiser("daedal", {"eos_window": 1})

    def test_only_the_first_unfinished_block_is_looked_at(self):
        decoder = make_denoiser("daedal", {"eos_window": 1, "block": 2})
        seen = [Revealed(5, 0.0), Revealed(6, 0.0), Revealed(5, 0.0), guess(0.2), guess(0.99), guess(0.05)]
        assert after(decoder, seen) == [5, 6, 5, 7, None, None]  # nor is a mask inserted at the last

    def test_a_slot_that_is_just_revealed_is_not_replaced(self):
        assert after(self.decoder, [guess(0.08), guess(0.05)]) == [7, *[None] * 8]
        assert after(self.decoder, [guess(0.05)]) == [7]

    @pytest.mark.parametrize("expecting", [Revealed(EOS, -3.0), guess(0.9, EOS)])
    def test_an_expected_or_revealed_eos_keeps_the_length(self, expecting):
        assert len(after(self.decoder, [guess(0.95), guess(0.05), expecting])) == 3

    @pytest.mark.parametrize(("most", "length"), [(100, 9), (9, 9), (8, 8), (4, 4), (2, 2), (1, 2)])
    def test_it_never_exceeds_the_most_slots(self, most, length):
        assert len(after(self.decoder, [guess(0.95), guess(0.05)], most=most)) == length


def expecting(eos, others, chance=0.5):
    """A wholly masked canvas: slots that expect a token, then slots that expect the EOS; the first is the surest."""
    return [guess(0.95), *[guess(chance)] * (others - 1), *[guess(chance, EOS)] * eos]


class TestRhoEos:
    decoder = make_denoiser("rho_eos")

    @pytest.mark.parametrize(
        ("eos", "others", "change"),
        [
            (5, 5, 0),
            (4, 6, 0),  # exactly 0.4
            (6, 4, 0),  # exactly 0.6
            (7, 13, 8),  # 0.35: gap 0.05, s = 1
            (3, 7, 8),  # 0.3: a gap of exactly 0.1, s = 1
            (1, 4, 16),  # 0.2: gap 0.2, s = 2
            (3, 17, 32),  # 0.15: gap 0.25, s = 3
            (0, 5, 64),  # gap 0.4, s = 4
            (13, 7, -8),  # 0.65
            (15, 5, -16),  # 0.75: gap 0.15, s = 2
            (90, 10, -32),  # 0.9: gap 0.3, s = 3
            (95, 5, -64),  # 0.95: gap 0.35, s = 4
        ],
    )
    def test_the_length_follows_the_share_of_slots_that_expect_the_eos(self, eos, others, change):
        seen = expecting(eos, others)
        assert after(self.decoder, seen, most=1000) == [7, *[None] * (len(seen) - 1 + change)]

    def test_only_masks_behind_all_revealed_slots_are_dropped_and_two_slots_stay(self):
        seen = [*[guess(0.5, EOS)] * 3, Revealed(5, 0.0), *[guess(0.5, EOS)] * 2]
        assert after(self.decoder, seen) == [EOS, None, None, 5]
        assert after(self.decoder, [guess(0.5, EOS)] * 5) == [EOS, None]

    def test_after_64_passes_the_length_stays(self):
        seen = expecting(0, 5)
        assert len(after(self.decoder, seen, step=63)) == 69
        assert len(after(self.decoder, seen, step=64)) == 5

    @pytest.mark.parametrize(("most", "length"), [(100, 69), (20, 20), (5, 5), (3, 5)])
    def test_it_never_exceeds_the_most_slots(self, most, length):
        assert len(after(self.decoder, expecting(0, 5), most=most)) == length


CASES = [(2, 48), (1, 16), (5, 32), (9, 16), (9, 40), (14, 48), (20, 40), (40, 48)]
DECODERS = [
    ("daedal", {"eos_window": 1}),
    ("daedal", {"eos_window": 32}),
    ("rho_eos", {}),
    ("daedal", {"eos_window": 12, "appended_eos": 6}),
    ("confidence_threshold", {"threshold": 0.6, "block": 8}),
    ("confidence_threshold", {"threshold": 0.7}),
    ("semi_autoregressive", {"block": 4, "tokens": 2}),
]


@pytest.fixture(scope="module")
def canvases(backbone):
    rng = random.Random(backbone.family.name)
    prompts = [[rng.randrange(len(backbone.tokenizer)) for _ in range(rng.randrange(4, 20))] for _ in CASES]
    return [Start(prompt, *case) for prompt, case in zip(prompts, CASES, strict=True)]


class Start(NamedTuple):
    """``length`` masks behind a prompt that may become ``most``, and their reading where it is known."""

    prompt: list[int]
    length: int
    most: int
    reading: ProbeResult | None = None


def fill(backbone, canvases, order, budget=None):
    engine, decoder = Engine(backbone, budget=budget), make_denoiser(*order)
    requests = [VariableLength(decoder, Canvas(one.prompt, one.length, (), one.reading), one.most) for one in canvases]
    return dict(enumerate(Runner(lambda: engine, engine.ledger).answers(requests))), engine.ledger


def plain(backbone, canvas, order, settings):
    if order == "rho_eos":
        return reference_variants.rho_eos(backbone, canvas.prompt, canvas.length, canvas.most)
    if order == "semi_autoregressive":
        return reference_variants.semi_autoregressive(backbone, canvas.prompt, canvas.length, *settings.values())
    if order == "confidence_threshold":
        block = settings.get("block", canvas.length)
        return reference_variants.confidence_threshold(
            backbone, canvas.prompt, canvas.length, settings["threshold"], block
        )
    window, appended = settings["eos_window"], settings.get("appended_eos", 0)
    return reference_variants.daedal(backbone, canvas.prompt, canvas.length, window, canvas.most, appended)


@pytest.mark.parametrize("order", DECODERS, ids=str)
def test_many_canvases_together_are_each_the_plain_algorithms(backbone, canvases, order):
    filled, ledger = fill(backbone, canvases, order)
    changed = 0
    for place, canvas in enumerate(canvases[::2]):
        tokens, lengths = plain(backbone, canvas, *order)
        ours = filled[2 * place]
        assert ours.tokens == tokens
        assert (ours.passes, ours.slots) == (len(lengths), sum(lengths))
        assert tokens[: ours.text].count(backbone.eos_id) == 0
        changed += len(tokens) != canvas.length
    assert changed > 2 or order[0] in ("semi_autoregressive", "confidence_threshold")  # guesses of an EOS are rare
    assert ledger["rows"] == sum(one.rows for one in filled.values())
    prompts = sum(len(canvas.prompt) * filled[place].passes for place, canvas in enumerate(canvases))
    assert ledger["tokens"] == prompts + sum(one.slots for one in filled.values())


@pytest.mark.parametrize("order", DECODERS[1:3], ids=str)
def test_a_result_is_bit_equal_in_any_company_and_from_a_known_reading(llada, order):
    rng = random.Random(2)
    prompts = [[rng.randrange(len(llada.tokenizer)) for _ in range(rng.randrange(4, 20))] for _ in range(8)]
    some = [Start(prompt, rng.randrange(2, 14), 32) for prompt in prompts]
    whole, ledger = fill(llada, some, order, budget=100_000)
    small, small_ledger = fill(llada, some, order, budget=90)
    assert whole == small and ledger["passes"] < small_ledger["passes"]
    assert {0: whole[7]} == fill(llada, [some[7]], order)[0]
    engine = Engine(llada)
    readings = Runner(lambda: engine, engine.ledger).answers([Probe(one.prompt, one.length) for one in some])
    begun = [one._replace(reading=reading) for one, reading in zip(some, readings, strict=True)]
    reused, cheaper = fill(llada, begun, order)
    assert reused == whole
    assert ledger["rows"] - cheaper["rows"] == sum(one.length for one in some)


@pytest.mark.parametrize(("start", "window", "most"), [(2, 1, 40), (11, 1, 40), (16, 32, 40)])
def test_the_first_stage_is_the_plain_algorithms(backbone, canvases, start, window, most):
    prompts = [canvas.prompt for canvas in canvases[:8]]
    length_method = make_method("daedal", {"start": start, "eos_window": window})
    runner, sentences = without_store(Engine(backbone)), in_prompts(prompts, backbone.context)
    rows = chosen_canvases(runner, sentences, length_method, [Sentence(5, room=most)] * len(prompts))
    for prompt, row in zip(prompts, rows, strict=True):
        assert row["candidates"] == reference_variants.daedal_lengths(backbone, prompt, start, window, most)
