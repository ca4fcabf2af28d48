"""EV's checks, on made-up results whose numbers are known."""

from __future__ import annotations

import fake_results
import pytest
from fake_sets import diagnose, put

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import TRANSLATIONS
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import sentences
from entropy_valley.stats.significance import Statistics, paired_test
from entropy_valley.tables.selector_checks import groups, measure, nominal_ratios
from entropy_valley.tables.valley_figure import OVER_RUNS, OVER_SENTENCES, curves, over_runs


@pytest.fixture
def params(tmp_path):
    return Params(fake_results.write_selector_checks(tmp_path))


def value(numbers, check, item, metric, direction="en-zh", seed=None):
    rows = numbers[(numbers["check"] == check) & (numbers["item"] == item) & (numbers["metric"] == metric)]
    rows = rows[(rows["direction"] == direction) & (rows["seed"].isna() if seed is None else rows["seed"] == seed)]
    return rows["value"].item()


def test_systems_are_compared_group_by_group():
    names = ["ev_median", "ev", "ev_reassigned_2", "ev_reassigned_deciles_1", "ev_reassigned_1", "ratio", "ev_sum"]
    assert groups(names) == {
        "ev_reassigned": ["ev_reassigned_2", "ev_reassigned_1"],
        "ev_reassigned_deciles": ["ev_reassigned_deciles_1"],
        "ev_sum": ["ev_sum"],
        "ev_median": ["ev_median"],
    }


def test_a_reassignment_is_the_sentence_wise_mean_of_its_permutations(params):
    numbers = measure(params)
    run = [cell for cell in params.cells if (cell.direction, cell.seed) == ("en-zh", 2)]
    scores = {cell.method: sentences(cell, fake_results.METRICS[0]) for cell in run}
    mean = (scores["ev_reassigned_1"] + scores["ev_reassigned_2"]) / 2
    test = paired_test(scores["ev"], mean, Statistics(200, 1))
    for metric in ("delta", "ci_low", "ci_high", "p_two_sided"):
        assert value(numbers, "test", "ev_reassigned", metric, seed=2) == pytest.approx(getattr(test, metric))
    assert value(numbers, "test", "ev_reassigned", "systems", seed=2) == 2
    assert value(numbers, "test", "ev_reassigned_deciles", "systems", seed=1) == 1


def test_the_sweeps_minimum_and_ends_are_means_over_runs(params):
    numbers = measure(params)
    valleys = [cell.diagnostics("valley") for cell in params.cells if (cell.method, cell.direction) == ("ev", "en-zh")]
    assert [value(numbers, "sweep", item, "ratio") for item in ("first", "lowest", "last")] == [0.4, 0.75, 1.5]
    expected = sum(valley["ratios"][2]["mean"] for valley in valleys) / 2
    assert value(numbers, "sweep", "lowest", "entropy") == pytest.approx(expected)


def test_ratios_that_ev_takes(params):
    numbers = measure(params)
    counts = [value(numbers, "chosen", str(place), "count") for place in (1, 2, 3)]
    assert counts == [14, 13, 13]  # forty sentences, in turn
    assert value(numbers, "chosen", "1", "share") == 14 / 40


def test_of_ratios_with_one_canvas_the_smallest_counts(params):
    ev = next(cell for cell in params.cells if cell.method == "ev")
    put(ev, TRANSLATIONS, [{"id": f"t{n}", "hypothesis": "", "canvas": {"length": n}} for n in (7, 13)])
    assert nominal_ratios(ev, [0.5, 0.55, 1.0]) == {0.5: 1, 1.0: 1}  # 6 and 6.6 tokens are both 6


def test_a_canvas_of_another_grid_is_an_error(params):
    ev = next(cell for cell in params.cells if cell.method == "ev")
    put(ev, TRANSLATIONS, [{"id": "t0", "hypothesis": "", "canvas": {"length": 9}}])
    with pytest.raises(InputError, match=r"translations\.jsonl: test ev .*: sentence 't0': 9 slots are no canvas"):
        measure(params)


def test_runs_share_a_band_of_deviations_and_a_single_run_has_its_sentences(params):
    points = curves(params.cells)
    assert len(points) == 3 * 2 * (5 + 5 + 5)  # directions, seeds, places on three axes: one file a run
    both = over_runs(points)
    assert set(both["spread"]) == {OVER_RUNS} and set(both["runs"]) == {2}
    single = over_runs(points[points["seed"] == 1])
    assert set(single["spread"]) == {OVER_SENTENCES}
    assert (single["high"] - single["mean"]).to_numpy() == pytest.approx(1.96 * 0.05)


def test_the_single_sentence_of_a_place_has_no_band(params):
    points = curves(params.cells[2:3]).assign(standard_error=float("nan"))
    assert over_runs(points)["low"].isna().all()


def test_another_file_is_no_valley(params):
    ev = next(cell for cell in params.cells if cell.method == "ev")
    diagnose(ev, "valley", {"offsets": []})
    with pytest.raises(InputError, match=r"diagnostics\.json: test ev .*: lacks one of offsets"):
        curves([ev])
    files.write_json(ev.diagnostics_file, {"sig": {}})
    with pytest.raises(InputError, match=r"diagnostics\.json: has no valley of test"):
        curves([ev])
