"""The diagnostics of all-mask canvases, valley and SIG, and the control that reassigns canvases, on a tiny model."""

from __future__ import annotations

import pytest
import reference_authors
from bench import METHODS

from entropy_valley import files
from entropy_valley.data.sampling import draw
from entropy_valley.decoding import reference
from entropy_valley.decoding.reference import Step
from entropy_valley.lengths.base import candidate_length
from entropy_valley.translation.diagnostics import concentration
from entropy_valley.translation.pipeline import distractors


def read(bench, sentences=500):
    return bench.diagnose("valley", offset=2, ratios=[0.6, 0.8, 1.0, 1.05], sentences=sentences, seed=1)


def tokens(llada, text):
    return llada.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_the_curves_are_what_the_reference_reads(bench, llada):
    value = read(bench, sentences=1)
    rows = files.read_jsonl(bench.testset)
    row = rows[draw(rows, 1, 1, "keyed_hash")[0]]
    length = len(tokens(llada, row["target"])) + 1
    prompt = tokens(llada, bench.spec["prompt"].replace("{src}", row["source"]))
    (centre,) = [point for point in value["offsets"] if point["at"] == 0]
    entropies, _ = reference.read(llada, prompt, [llada.mask_id] * length)
    assert centre["mean"] == pytest.approx(sum(entropies[:-1]) / (length - 1), abs=1e-5)
    assert (centre["mean_length"], centre["sentences"]) == (length, 1)
    source = value["source_tokens"][row["id"]]
    assert source == len(tokens(llada, row["source"]))
    assert [point["mean_length"] for point in value["ratios"]] == [
        candidate_length(ratio, source) for ratio in (0.6, 0.8, 1.0, 1.05)
    ]
    assert value["signature"]["data_digest"] == files.file_digest(bench.testset)


def test_evs_canvases_are_not_probed_again(bench, no_model):
    read(bench)
    no_model()
    bench.canvas("ev")  # the same grid
    assert bench.ledgers()[-1]["computed"] == 0


def test_reassigned_canvases_need_no_probes_and_keep_the_ratios(bench):
    """The method that they come from is no cell of the set."""
    given, rows = bench.canvas("ev"), {}
    for within in ("all", "deciles"):
        settings = {"method": "reassigned", "of": "ev", "seed": 1, "within": within}
        spec = bench.set_of("dealt", chosen=settings)
        spec["methods"]["ev"] = METHODS["ev"]
        rows[within] = [row["canvas"] for row in bench.write(spec)[0]]
        assert all(row["candidates"] == [row["length"]] and not row["calls"] for row in rows[within])
    assert [row["length"] for row in rows["all"]] != [row["length"] for row in given]
    # A decile of twelve sentences has one or two.
    assert rows["all"] != rows["deciles"]


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
        sigs = Step([], own, lambda other=other: other, 0, 1).sig().tolist()
        assert row["concentration"] == pytest.approx(concentration(sigs, OURS), abs=1e-4)
        assert row["mean_sig"] == pytest.approx(sum(sigs) / len(sigs), abs=1e-4)


def test_a_reading_with_the_sig_is_no_selectors_probe(bench):
    """What is stored for the one is never taken for the other."""
    bench.diagnose("sig", **OURS)
    bench.canvas("ev")
    assert bench.ledgers()[-1]["computed"] == bench.ledgers()[-1]["requested"]
