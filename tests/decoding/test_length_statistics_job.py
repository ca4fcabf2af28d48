"""From training pairs to statistics to canvases, on a tiny random model."""

from __future__ import annotations

import pytest
from bench import METHODS, Bench

from entropy_valley import files
from entropy_valley.decoding import reference
from entropy_valley.errors import InputError
from entropy_valley.lengths import statistics
from entropy_valley.store import Store
from entropy_valley.translation.fits import length_statistics
from entropy_valley.translation.job import ModelJob

FITTED = {"cal": {"ratios": 1.2}, "ev_calibrated": {"ratios": [0.6, 0.8, 1.0, 1.05]}, "ev_prior": {"window": 1.0}}


@pytest.fixture
def bench(tmp_path, checkpoints, testset, monkeypatch):
    for method, settings in FITTED.items():
        monkeypatch.setitem(METHODS, method, settings)
    return Bench(tmp_path, checkpoints, testset)


def measure(bench, **settings):
    """The test set's pairs stand for training pairs."""
    spec = {**bench.spec, "pairs": 5, "bias_pairs": 2, **settings}
    with ModelJob(spec, bench.execution, bench.testset) as job:
        return length_statistics(job)


def test_what_is_measured_is_what_the_reference_reads(bench, llada):
    value = measure(bench, pairs=1)
    rows = files.read_jsonl(bench.testset)
    counts = [
        [len(llada.tokenizer(row[side], add_special_tokens=False)["input_ids"]) for side in ("source", "target")]
        for row in rows
    ]
    assert value["ratio"] == statistics.ratio_moments([tuple(pair) for pair in counts])  # all of the corpus, no model
    length = counts[0][1] + 1
    prompt = llada.tokenizer(bench.spec["prompt"].replace("{src}", rows[0]["source"]), add_special_tokens=False)
    entropies, _ = reference.read(llada, prompt["input_ids"], [llada.mask_id] * length)
    assert value["expected_entropy"]["shortest"] == length
    assert value["expected_entropy"]["values"] == pytest.approx([sum(entropies[:-1]) / (length - 1)], abs=1e-5)


def test_a_pool_is_measured_as_if_it_were_the_corpus(bench):
    whole, rows = bench.testset, files.read_jsonl(bench.testset)
    measured = [measure(bench, limit=4)]
    bench.testset.write_text("".join(whole.read_text(encoding="utf-8").splitlines(keepends=True)[:4]), encoding="utf-8")
    measured.append(measure(bench))
    assert len(rows) > 4
    assert measured[0] == measured[1]


def test_the_bias_leaves_out_lengths_near_the_true_one_and_beyond_the_context(bench, llada):
    points = measure(bench)["confidence_bias"]["points"]
    rows = files.read_jsonl(bench.testset)[:2]
    true = [len(llada.tokenizer(row["target"], add_special_tokens=False)["input_ids"]) + 1 for row in rows]
    canvases = {point["length"]: point["canvases"] for point in points}
    for length in statistics.LENGTHS[:-2]:
        assert canvases.get(length, 0) == sum(abs(length - one) > 4 for one in true)
    assert 128 not in canvases  # the context, which holds the prompt too


@pytest.mark.parametrize("method", FITTED)
def test_canvases_from_statistics(bench, method):
    bench.fit(length_statistics={"pairs": 5, "bias_pairs": 2})
    rows, _ = bench.decode(method)
    header = files.read_json(bench.out.with_suffix(".json"))
    assert header["facts"]["fits"]["length_statistics"]["ratio"]["std"] > 0
    assert str(bench.execution.corpus / "train.jsonl") in header["inputs"]
    for row in (row["canvas"] for row in rows):
        assert row["calls"] == len(row["candidates"]) and row["slots"] == sum(row["candidates"])
        assert row["scores"][row["candidates"].index(row["length"])] == min(row["scores"])


def test_a_corpus_that_nothing_can_be_fitted_to_is_said_of_each_method_that_needs_it(bench, capsys):
    bench.fit(length_statistics={"pairs": 5, "bias_pairs": 2})
    files.write_jsonl(bench.execution.corpus / "train.jsonl", [{"id": "a", "source": "", "target": "a"}])
    spec = bench.set_of("cal")
    spec["cells"] += [["test", name, "med", 8] for name in ("ratio", "ev_prior")]
    spec["methods"] |= {name: METHODS[name] for name in ("ratio", "ev_prior")}
    with pytest.raises(InputError, match="not written: test cal, test ev_prior failed"):
        bench.write(spec)
    message = capsys.readouterr().err
    problem = "length statistics: no training pair"
    assert all(f"error: test {method}: {problem}" in message for method in ("cal", "ev_prior"))
    assert bench.decode("ratio") and bench.ledgers()[-1]["computed"] == 0


def test_a_second_run_loads_no_model_and_measures_the_same(bench, no_model):
    """The probes of training pairs have a store of their own."""
    bench.fit(length_statistics={"pairs": 5, "bias_pairs": 2})
    first = bench.decode("ev_prior")
    assert len(Store(bench.execution.store / "length_statistics")) > 5
    no_model()
    assert bench.decode("ev_prior") == first
