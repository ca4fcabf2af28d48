"""The benchmark of one method, on a tiny random model and a clock that the test turns."""

import datetime
import itertools

import pytest

from entropy_valley import files
from entropy_valley.translation import latency


def test_what_a_sentence_alone_needs_is_what_it_is_decoded_with(bench):
    """With one sentence in the stream its passes are its own: EV's probes, all in one, and the steps that reveal."""
    value = bench.latency("ratio", sentences=100, repeats=1)
    rows, info = bench.decode("ratio")
    assert value["sentences"] == len(rows) == 12
    assert value["single"]["passes"] + value["single"]["foreseen"] == pytest.approx(info["passes"] / 12)
    assert value["single"]["tokens"] == value["batched"]["tokens"] == info["run_tokens"] / 12
    assert value["single"]["rows"] == value["batched"]["rows"] == info["head_rows"] / 12
    assert value["batched"]["passes"] < value["single"]["passes"]


def test_a_batch_has_so_many_sentences(bench):
    """Batches of one are sentences alone; the last batch may be smaller."""
    alone, whole, parts = (bench.latency("ratio", sentences=5, batch=size, repeats=1) for size in (1, None, 2))
    assert (
        alone["batched"]["passes"]
        == alone["single"]["passes"]
        > parts["batched"]["passes"]
        > whole["batched"]["passes"]
    )
    assert (alone["batch"], whole["batch"], parts["batch"]) == (1, 5, 2)


def test_median_of_the_repeats_without_the_round_that_warms_up(bench, monkeypatch):
    spent = iter([100.0, 5.0, 15.0, 10.0, 100.0, 1.0, 1.0, 2.0])
    starts = itertools.chain.from_iterable((0.0, seconds) for seconds in spent)
    monkeypatch.setattr(latency.time, "perf_counter", lambda: next(starts))
    value = bench.latency("ratio")
    assert value["single"]["repeats"] == [1.0, 3.0, 2.0]
    assert value["single"]["seconds_per_sentence"] == 2.0
    assert value["batched"]["seconds_per_sentence"] == 0.2


def test_says_where_and_when_it_was_measured_and_leaves_nothing_in_the_store(bench):
    value = bench.latency("ratio", repeats=1, execution={"token_budget": 256})
    assert (value["precision"], value["token_budget"], value["threads"]) == ("float32", 256, 1)
    assert value["device"] and value["torch"]
    assert value["date"] == datetime.datetime.now(datetime.UTC).date().isoformat()
    assert value["signature"]["decoder"].endswith("|med|T8|float32|llada")
    assert value["signature"]["data_digest"] == files.file_digest(bench.testset)
    assert not list((bench.root / "store").rglob("*.*"))
