from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.demo import corruption, grammar

SENTENCES = grammar.generate(60, seed=2)
TEXTS = st.sampled_from([text for one in SENTENCES for text in (one.en, one.zh, one.de, one.fr)])
VOCABULARY = [" wrong", "错"]


@given(TEXTS)
def test_units_join_to_the_text(text):
    assert "".join(corruption.units(text)).strip() == text


def test_units_of_each_script():
    assert corruption.units("Call #PRS_ORG# today.") == [" Call", " #PRS_ORG#", " today", "."]
    assert corruption.units("在#PRS_ORG#付79%。") == ["在", "#PRS_ORG#", "付", "79%", "。"]
    assert corruption.units("Quand est-ce qu'il va ?") == [" Quand", " est-ce", " qu'il", " va", " ?"]


@given(TEXTS, st.data())
def test_edits_are_counted_exactly(text, data):
    reference = corruption.units(text)
    kind = data.draw(st.sampled_from(["drop", "repeat", "insert", "replace"]))
    places = data.draw(st.sets(st.integers(0, len(reference) - 1)))
    spoiled, edits = corruption.corrupt(reference, dict.fromkeys(places, kind), VOCABULARY, random.Random(0))
    assert edits == len(places)
    change = {"drop": -1, "repeat": 1, "insert": 1, "replace": 0}[kind]
    assert len(spoiled) == len(reference) + change * len(places)


@given(TEXTS)
def test_swapping_only_moves_units(text):
    reference = corruption.units(text)
    spoiled, edits = corruption.corrupt(reference, {0: "swap", 1: "swap"}, VOCABULARY, random.Random(0))
    assert spoiled == [reference[1], reference[0], *reference[2:]]
    assert edits == 2 * corruption.DISPLACED * (reference[0].strip() != reference[1].strip())


@given(TEXTS, st.sampled_from([*corruption.KINDS, corruption.MIXED]), st.integers(0, 1000))
def test_samples_stay_within_the_scale(text, kind, seed):
    one = corruption.sample(text, kind, VOCABULARY, random.Random(seed))
    assert corruption.LOWEST <= one.quality <= corruption.HIGHEST
    assert (one.edits == 0) == (one.quality == corruption.HIGHEST)
    assert one == corruption.sample(text, kind, VOCABULARY, random.Random(seed))


def test_quality_falls_in_equal_steps():
    steps = [corruption.quality(edits, 10, 10) for edits in range(11)]
    assert steps[0] == corruption.HIGHEST and steps[10] == pytest.approx(corruption.LOWEST)
    assert [a - b for a, b in itertools.pairwise(steps)] == pytest.approx([0.065] * 10)
    assert corruption.quality(1, 10, 11) > corruption.quality(1, 10, 9)
    assert corruption.quality(0, 0, 0) == corruption.HIGHEST
