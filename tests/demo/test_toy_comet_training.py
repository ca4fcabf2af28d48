import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_rule import run_here

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo import grammar, toy_comet

SENTENCES = list(itertools.islice(grammar.stream(2), 60))
TEXTS = st.sampled_from([text for one in SENTENCES for text in (one.en, one.zh, one.de, one.fr)])
VOCABULARY = [" wrong", "错"]


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


def rows(count, seed):
    return [{"source": one.en, "target": one.zh} for one in itertools.islice(grammar.stream(seed), count)]


def test_an_estimator_that_does_not_rank_texts_is_refused(tmp_path):
    """That one is trained again to the same bytes: tests/faults. That it ranks texts: the demo's own limit."""
    read = {}
    for split, count in (("train", 40), ("dev", 20)):
        read[split] = [tmp_path / f"{split}.jsonl"]
        files.write_jsonl(read[split][0], rows(count, 1))
    spec = {"revision": 1, "seed": 1, "steps": 1, "width": 16}
    with pytest.raises(InputError, match="Spearman correlation"):
        run_here("train_comet", spec, read, tmp_path / "one/comet.json")
    assert not (tmp_path / "one").exists()
