"""SIG concentrations of a test set, on a tiny random model."""

from __future__ import annotations

import pytest
from bench import Bench

from entropy_valley import files
from entropy_valley.decoding import reference, reference_authors
from entropy_valley.decoding.reference import Step
from entropy_valley.translation.diagnostics import concentration
from entropy_valley.translation.job import distractors


@pytest.fixture
def bench(tmp_path, checkpoints, testset):
    return Bench(tmp_path, checkpoints, testset)


OURS = {"sig": "stepwise_kl", "measure": "top_share", "share": 0.2}
THEIRS = {"sig": "distractor", "measure": "gini"}


def test_it_is_the_gini_coefficient_of_the_plain_entropies_behind_source_and_distractor(bench, llada):
    rows, wanted = bench.diagnose("sig", **THEIRS), files.read_jsonl(bench.testset)
    places = distractors([pair["source"] for pair in wanted])
    encode = lambda text: llada.tokenizer(text, add_special_tokens=False)["input_ids"]  # noqa: E731
    prompts = [encode(bench.spec["prompt"].replace("{src}", pair["source"])) for pair in wanted]
    for place, (row, pair) in enumerate(zip(rows[:3], wanted, strict=False)):
        length = len(encode(pair["target"])) + 1
        sigs = reference_authors.slot_sigs(llada, prompts[place], prompts[places[place]], length)
        assert row["concentration"] == pytest.approx(concentration(sigs, THEIRS), abs=1e-4)
        assert row["mean_sig"] == pytest.approx(sum(sigs) / length, abs=1e-4)


def test_a_stepwise_sig_is_that_of_the_plain_forward_pass_at_the_reference_length(bench, llada):
    rows, wanted = bench.diagnose("sig", **OURS), files.read_jsonl(bench.testset)
    assert [row["id"] for row in rows] == [row["id"] for row in wanted]
    for row, pair in zip(rows[:3], wanted, strict=False):
        encode = lambda text: llada.tokenizer(text, add_special_tokens=False)["input_ids"]  # noqa: E731
        masks = [llada.mask_id] * (len(encode(pair["target"])) + 1)
        own, other = (
            reference.slot_logits(llada, encode(bench.spec["prompt"].replace("{src}", source)), masks)
            for source in (pair["source"], "")
        )
        sigs = Step([], own, lambda other=other: other, 0, 1).sig(backward=False).tolist()
        assert row["concentration"] == pytest.approx(concentration(sigs, OURS), abs=1e-4)
        assert row["mean_sig"] == pytest.approx(sum(sigs) / len(sigs), abs=1e-4)


def test_a_second_run_loads_no_model_and_reads_the_same(bench, no_model):
    first = bench.diagnose("sig", **THEIRS)
    no_model()
    assert bench.diagnose("sig", **THEIRS) == first
    counts = [ledger["computed"] for ledger in bench.ledgers()]
    assert 12 < counts[0] <= 24 and counts[1] == 0  # each sentence behind its source, and behind its distractor


def test_a_reading_with_the_sig_is_no_selectors_probe(bench):
    """What is stored for the one is never taken for the other."""
    bench.diagnose("sig", **OURS)
    bench.canvas("ev")
    assert bench.ledgers()[-1]["computed"] == bench.ledgers()[-1]["requested"]
