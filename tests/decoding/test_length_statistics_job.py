"""From training pairs to statistics to canvases, on a tiny random model."""

from __future__ import annotations

import pytest
from bench import METHODS, Bench

from entropy_valley import files
from entropy_valley.decoding import reference
from entropy_valley.errors import InputError
from entropy_valley.lengths import make_method, statistics
from entropy_valley.lengths.statistics import LengthStatistics
from entropy_valley.store import Store
from entropy_valley.translation.fits import examples, length_statistics
from entropy_valley.translation.job import ModelJob

FITTED = {"cal": {"ratios": 1.2}, "ev_fit": {"candidates": 3, "pairs": 5}}
PARTS = ["confidence_bias", "line"]
FITS = {
    "length_statistics": {"parts": PARTS, "bias_pairs": 2},
    "learned": {"methods": {"ev_fit": FITTED["ev_fit"]}},
}


@pytest.fixture
def bench(tmp_path, checkpoints, testset, monkeypatch):
    for method, settings in FITTED.items():
        monkeypatch.setitem(METHODS, method, settings)
    return Bench(tmp_path, checkpoints, testset)


def measure(bench, **settings):
    """The test set's pairs stand for training pairs."""
    spec = {**bench.spec, "parts": PARTS, "bias_pairs": 2, **settings}
    with ModelJob(spec, bench.execution, bench.testset) as job:
        return length_statistics(job)


def test_the_line_counts_the_tokens_of_all_pairs(bench, llada, no_model):
    no_model()
    value = measure(bench, parts=["line"])
    counts = [
        tuple(len(llada.tokenizer(row[side], add_special_tokens=False)["input_ids"]) for side in ("source", "target"))
        for row in files.read_jsonl(bench.testset)
    ]
    assert value == {"line": statistics.length_line(counts)}


def test_examples_are_what_the_reference_reads(bench, llada):
    """The sentence, its proposed canvases and its own length, for the first pairs."""
    rows = files.read_jsonl(bench.testset)
    line = measure(bench, parts=["line"])
    method = make_method("ev_fit", {"candidates": 2, "pairs": 3}, LengthStatistics.of(line))
    with ModelJob(bench.spec, bench.execution, bench.testset) as job:
        found = examples(job, method)
    assert len(found) == 3
    for row, one in zip(rows, found, strict=False):
        target = llada.tokenizer(row["target"], add_special_tokens=False)["input_ids"]
        assert one.length == len(target) + 1 and set(one.probes) == set(method.propose(one.sentence, {}))
        prompt = llada.tokenizer(bench.spec["prompt"].replace("{src}", row["source"]), add_special_tokens=False)
        for length, reading in one.probes.items():
            entropies, _ = reference.read(llada, prompt["input_ids"], [llada.mask_id] * length)
            assert reading.entropies == pytest.approx(entropies, abs=1e-5)


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
    bench.fit(**FITS)
    rows, _ = bench.decode(method)
    header = files.read_json(bench.out.with_suffix(".json"))
    fits = header["facts"]["fits"]
    assert fits["length_statistics"].keys() == set(PARTS) and fits["learned"]["ev_fit"]["weights"]
    assert str(bench.execution.corpus / "train.jsonl") in header["inputs"]
    for row in (row["canvas"] for row in rows):
        assert row["calls"] == len(row["candidates"]) and row["slots"] == sum(row["candidates"])
        assert row["scores"][row["candidates"].index(row["length"])] == min(row["scores"])


def test_a_corpus_that_nothing_can_be_fitted_to_is_said_of_each_method_that_needs_it(bench, capsys):
    bench.fit(**FITS)
    files.write_jsonl(bench.execution.corpus / "train.jsonl", [{"id": "a", "source": "", "target": "a"}])
    spec = bench.set_of("cal")
    spec["cells"] += [["test", name, "med", 8] for name in ("ratio", "ev_fit")]
    spec["methods"] |= {name: METHODS[name] for name in ("ratio", "ev_fit")}
    with pytest.raises(InputError, match="not written: test cal, test ev_fit failed"):
        bench.write(spec)
    message = capsys.readouterr().err
    problem = "length statistics: no training pair"
    assert all(f"error: test {method}: {problem}" in message for method in ("cal", "ev_fit"))
    assert bench.decode("ratio") and bench.ledgers()[-1]["computed"] == 0


def test_a_second_run_loads_no_model_and_measures_the_same(bench, no_model):
    """The probes of training and development pairs have a store of their own."""
    bench.fit(**FITS)
    first = bench.decode("ev_fit")
    assert len(Store(bench.execution.store / "fits")) > 5
    no_model()
    assert bench.decode("ev_fit") == first
