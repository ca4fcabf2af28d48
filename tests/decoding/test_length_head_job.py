"""From training pairs to a length head to canvases and translations, on a tiny random model."""

import pytest
from bench import METHODS, Bench

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.lengths import make_method
from entropy_valley.lengths.length_head import LengthHead
from entropy_valley.model.prompt import Prompt
from entropy_valley.translation.fits import Fits
from entropy_valley.translation.job import RunModel
from entropy_valley.translation.translator import Translator

TRAINING = {"pairs": 9, "epochs": 3, "learning_rate": 0.1, "batch": 4, "longest": 12}


@pytest.fixture
def bench(tmp_path, checkpoints, testset, monkeypatch):
    monkeypatch.setitem(METHODS, "length_head", {"beam": 1})
    monkeypatch.setitem(METHODS, "length_head_beam5", {"method": "length_head", "beam": 5})
    bench = Bench(tmp_path, checkpoints, testset)
    bench.fit(length_head={"seed": 1, "training": TRAINING})
    return bench


def trained(bench, seed=1):
    """The test set's pairs stand for training and dev pairs."""
    model = RunModel(bench.spec, bench.execution)
    with model.store:
        return Fits.of(model, {"length_head": bench.fits["length_head"] | {"seed": seed}}), model.ledger


def test_canvases_and_translations_from_a_head(bench, no_model):
    greedy, _ = bench.decode("length_head")
    info = files.read_json(bench.out.with_suffix(".json"))["facts"]["fits"]["length_head"]
    translations, _ = bench.decode("length_head_beam5")
    for plain, translation in zip(greedy, translations, strict=True):
        one, row = plain["canvas"], translation["canvas"]
        assert (row["length"], row["calls"], row["slots"]) == (one["length"], 1, 0)
        assert row["candidates"] == row["contenders"] and len(row["contenders"]) == 5
        assert row["scores"][row["candidates"].index(row["length"])] == min(row["scores"])
        assert "contenders" not in one and plain["calls"] == 1 + 8 and plain["slots"] == 8 * plain["length"]
        assert translation["calls"] == 1 + 5 * 8 and translation["slots"] == 8 * sum(row["contenders"])
        assert (translation["logprob"] or -99) >= (plain["logprob"] or -99)
    # The second job shares the head, all predictions and the canvases that the first has decoded.
    first, second = bench.ledgers()
    decoded = first["computed"] - 1 - 12
    assert 0 < decoded <= 12 and second["computed"] == 5 * 12 - decoded
    assert first["rows"] == sum(row["head_rows"] for row in greedy)
    assert trained(bench)[0].facts["length_head"] == info
    no_model()
    bench.canvas("length_head")


def test_another_heads_predictions_are_not_taken(bench):
    for seed in (1, 2):
        bench.fits["length_head"]["seed"] = seed
        bench.canvas("length_head")
    assert [ledger["computed"] for ledger in bench.ledgers()] == [13, 13]


def test_the_translator_reads_the_same_head(bench, llada):
    rows, _ = bench.decode("length_head")
    sources = [row["source"] for row in files.read_jsonl(bench.testset)]
    prompt, length_method = Prompt(bench.spec["prompt"], llada.tokenizer), make_method("length_head", {})
    head = LengthHead.of(trained(bench)[0].head)
    translations = Translator(llada, prompt, length_method, steps=8, length_head=head).translate(sources)
    assert [(one.text, one.length) for one in translations] == [(row["hypothesis"], row["length"]) for row in rows]
    with pytest.raises(InputError, match="needs a length head"):
        Translator(llada, prompt, length_method).translate(sources)
