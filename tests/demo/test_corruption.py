from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.demo import grammar, toy_comet

SENTENCES = grammar.generate(60, seed=2)
TEXTS = st.sampled_from([text for one in SENTENCES for text in (one.en, one.zh, one.de, one.fr)])
VOCABULARY = [" wrong", "错"]


@given(TEXTS)
def test_units_join_to_the_text(text):
    assert "".join(toy_comet.units(text)).strip() == text


def test_units_of_each_script():
    assert toy_comet.units("Call #PRS_ORG# today.") == [" Call", " #PRS_ORG#", " today", "."]
    assert toy_comet.units("在#PRS_ORG#付79%。") == ["在", "#PRS_ORG#", "付", "79%", "。"]
    assert toy_comet.units("Quand est-ce qu'il va ?") == [" Quand", " est-ce", " qu'il", " va", " ?"]


@given(TEXTS, st.data())
def test_edits_are_counted_exactly(text, data):
    reference = toy_comet.units(text)
    kind = data.draw(st.sampled_from(["drop", "repeat", "insert", "replace"]))
    places = data.draw(st.sets(st.integers(0, len(reference) - 1)))
    spoiled, edits = toy_comet.corrupt(reference, dict.fromkeys(places, kind), VOCABULARY, random.Random(0))
    assert edits == len(places)
    change = {"drop": -1, "repeat": 1, "insert": 1, "replace": 0}[kind]
    assert len(spoiled) == len(reference) + change * len(places)


@given(TEXTS)
def test_swapping_only_moves_units(text):
    reference = toy_comet.units(text)
    spoiled, edits = toy_comet.corrupt(reference, {0: "swap", 1: "swap"}, VOCABULARY, random.Random(0))
    assert spoiled == [reference[1], reference[0], *reference[2:]]
    assert edits == 2 * toy_comet.DISPLACED * (reference[0].strip() != reference[1].strip())


@given(TEXTS, st.sampled_from([*toy_comet.KINDS, toy_comet.MIXED]), st.integers(0, 1000))
def test_samples_stay_within_the_scale(text, kind, seed):
    one = toy_comet.corrupt_at_random(text, kind, VOCABULARY, random.Random(seed))
    assert toy_comet.LOWEST <= one.quality <= toy_comet.HIGHEST
    assert (one.edits == 0) == (one.quality == toy_comet.HIGHEST)
    assert one == toy_comet.corrupt_at_random(text, kind, VOCABULARY, random.Random(seed))


def test_quality_falls_in_equal_steps():
    steps = [toy_comet.quality_of(edits, 10, 10) for edits in range(11)]
    assert steps[0] == toy_comet.HIGHEST and steps[10] == pytest.approx(toy_comet.LOWEST)
    assert [a - b for a, b in itertools.pairwise(steps)] == pytest.approx([0.065] * 10)
    assert toy_comet.quality_of(1, 10, 11) > toy_comet.quality_of(1, 10, 9)
    assert toy_comet.quality_of(0, 0, 0) == toy_comet.HIGHEST
