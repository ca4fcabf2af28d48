"""The diagnostics of all-mask canvases, valley and SIG, and the control that reassigns canvases, on a tiny model."""

import pytest
from bench import METHODS

from entropy_valley import files
from entropy_valley.decoding import reference
from entropy_valley.decoding.reference import Step
from entropy_valley.translation.diagnostics import gini


def test_evs_canvases_are_not_probed_again(bench, no_model):
    bench.diagnose("valley", offset=2, ratios=METHODS["ev"]["ratios"], sentences=500, seed=1)
    no_model()
    bench.canvas("ev")
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


OURS = {"sig": "stepwise_kl"}


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
        assert row["concentration"] == pytest.approx(gini(sigs), abs=1e-4)
        assert row["mean_sig"] == pytest.approx(sum(sigs) / len(sigs), abs=1e-4)


def test_a_reading_with_the_sig_is_no_selectors_probe(bench):
    """What is stored for the one is never taken for the other."""
    bench.diagnose("sig", **OURS)
    bench.canvas("ev")
    assert bench.ledgers()[-1]["computed"] == bench.ledgers()[-1]["requested"]
