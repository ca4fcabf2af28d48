from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import fake_results
import pytest
from fake_results import METRICS
from fake_sets import put, rows

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import collect, sentences, summarise
from entropy_valley.stats.comparisons import compare, compare_autoregressive, mean_differences
from entropy_valley.stats.significance import Statistics, paired_test

TEST = {"metric": METRICS[0], "how": Statistics(50, 3)}


def summary_of(params):
    return summarise(params.cells, params.metrics)


def parsed(params):
    return Params(params)


def test_collect_is_tidy(params):
    frame = collect(parsed(params).cells, METRICS)
    assert len(frame) == 3 * len(params["cells"])
    assert list(frame.columns[-3:]) == ["method", "metric", "value"]
    assert frame.groupby(["backbone", "direction", "seed", "method", "metric"]).size().eq(1).all()


@pytest.mark.parametrize("value", ["0.8", None, True])
def test_a_score_must_be_a_number(params, value):
    put(params["cells"][0], SCORES, bleu=value)
    with pytest.raises(InputError, match="bleu is"):
        collect(parsed(params).cells, METRICS)


def test_a_cell_that_its_set_does_not_have_is_named(params):
    (cell, *_), file = parsed(params).cells, SCORES.removesuffix("l")
    other = dataclasses.replace(cell, steps=64)
    with pytest.raises(InputError, match=rf"{file}: has nothing of test oracle med-T64\."):
        collect([other], METRICS)
    with pytest.raises(InputError, match=rf"{SCORES}: has no rows of test oracle med-T64\."):
        sentences(other, METRICS[0])
    files.write_json(Path(cell.path, file), {"facts": {}})
    with pytest.raises(InputError, match=rf"{file}: is no header"):
        collect([cell], METRICS)


def test_summary_keeps_runs_apart(params):
    summary = summary_of(parsed(params))
    rows = summary[(summary["metric"] == "comet22") & (summary["direction"] == "en-zh")].set_index(
        ["backbone", "method"]
    )
    three, one = rows.loc[("llada-tiny", "ev")], rows.loc[("dream-tiny", "ev")]
    values = [
        cell.scores()["comet22"]
        for cell in parsed(params).cells
        if (cell.backbone, cell.direction, cell.method) == ("llada-tiny", "en-zh", "ev")
    ]
    assert three["mean"] == pytest.approx(sum(values) / 3)
    assert (three["runs"], one["runs"]) == (3, 1)
    assert math.isnan(one["std"])
    assert rows.loc[("llada-tiny", "oracle"), "gap_closure_mean"] == 1
    assert rows.loc[("llada-tiny", "ratio"), "gap_closure_mean"] == 0
    assert three["delta_ratio"] == pytest.approx(three["mean"] - rows.loc[("llada-tiny", "ratio"), "mean"])


def test_lower_scores_close_the_gap_where_lower_is_better(params):
    metrics = [dict(metric) | {"higher_is_better": metric["name"] != "chrf"} for metric in params["metrics"]]
    for cell in params["cells"]:
        chrf = {"oracle": 10.0, "ev": 25.0, "ratio": 30.0}[cell["method"]]
        put(cell, SCORES, chrf=chrf)
    rows = summary_of(parsed(params | {"metrics": metrics})).query("metric == 'chrf'")
    assert set(rows.loc[rows.method == "ev", "gap_closure_mean"]) == {0.25}
    assert set(rows.loc[rows.method == "ev", "delta_ratio"]) == {-5.0}


def test_methods_need_the_same_seeds(params):
    cells = [cell for cell in params["cells"] if (cell["method"], cell["seed"]) != ("ratio", 2)]
    with pytest.raises(InputError, match="ratio of seed 2"):
        summary_of(parsed(params | {"cells": cells}))


def test_compare_tests_each_run_by_itself(params):
    tests = compare(parsed(params).cells, **TEST)
    assert len(tests) == 3 * len(params["cells"]) / 3
    assert set(zip(tests["first"], tests["second"], strict=True)) == {
        ("ev", "ratio"),
        ("oracle", "ev"),
        ("oracle", "ratio"),
    }
    cells = {cell.method: cell for cell in parsed(params).cells[:3]}
    alone = paired_test(*(sentences(cells[name], METRICS[0]) for name in ("ev", "ratio")), Statistics(50, 3))
    assert tests.iloc[0]["delta"] == alone.delta
    assert tests.iloc[0]["p_one_sided"] == alone.p_one_sided
    assert (tests["sentences"] == 60).all()


def test_compare_pairs_sentences_by_id(params):
    before = compare(parsed(params).cells, **TEST)
    ratio = next(cell for cell in parsed(params).cells if cell.method == "ratio")
    put(ratio, SCORES, rows(ratio, SCORES)[::-1])
    assert compare(parsed(params).cells, **TEST).equals(before)


def test_compare_refuses_other_sentences(params):
    ratio = next(cell for cell in parsed(params).cells if cell.method == "ratio")
    put(ratio, SCORES, rows(ratio, SCORES)[1:])
    with pytest.raises(InputError, match=r"1 ids are in one only, such as 't0'"):
        compare(parsed(params).cells, **TEST)


def test_compare_needs_all_methods(params):
    cells = [cell for cell in params["cells"] if cell["method"] != "ev"]
    with pytest.raises(InputError, match="no cell of method ev"):
        compare(parsed(params | {"cells": cells}).cells, **TEST)


def test_autoregressive_systems_are_compared_seed_by_seed(matched):
    cells = parsed(matched).cells
    tests = compare_autoregressive(cells, **TEST)
    assert tests.groupby("direction")["seed"].agg(list).to_dict() == {key: [1, 2] for key in fake_results.DIRECTIONS}
    assert set(tests[["backbone", "first", "second_backbone", "second"]].itertuples(index=False, name=None)) == {
        ("llada-tiny", "ev", "llama3-tiny", "beam4")
    }
    one = {
        (cell.backbone, cell.method): sentences(cell, METRICS[0])
        for cell in cells
        if (cell.direction, cell.seed) == ("zh-en", 2)
    }
    alone = paired_test(one["llada-tiny", "ev"], one["llama3-tiny", "beam4"], Statistics(50, 3))
    row = tests.set_index(["direction", "seed"]).loc[("zh-en", 2)]
    assert (row["delta"], row["ci_low"], row["ci_high"]) == (alone.delta, alone.ci_low, alone.ci_high)


def test_differences_are_averaged_over_runs(matched):
    tests = compare_autoregressive(parsed(matched).cells, **TEST)
    tests.loc[tests["direction"] == "en-zh", "delta"] = [0.01, 0.03]
    row = mean_differences(tests).set_index("direction").loc["en-zh"]
    assert row["mean"] == pytest.approx(0.02)
    assert row["runs"] == 2
    assert "std" not in row  # it would depend on which trainings are paired


def test_nothing_to_pair_with_is_an_error(matched):
    cells = [cell | {"seed": 9} if cell["method"] == "beam4" else cell for cell in matched["cells"]]
    with pytest.raises(InputError, match="no autoregressive run"):
        compare_autoregressive(parsed(matched | {"cells": cells}).cells, **TEST)


def test_summary_of_an_autoregressive_system_has_no_gap(matched):
    summary = summary_of(parsed(matched))
    beam = summary[(summary["method"] == "beam4") & (summary["metric"] == "comet22")]
    assert (len(beam), set(beam["runs"]), set(beam["gap_closure_runs"])) == (3, {2}, {0})
    assert beam["delta_ratio"].isna().all()


def test_an_id_must_not_come_twice(params):
    cell = parsed(params).cells[0]
    scores = rows(cell, SCORES)
    put(cell, SCORES, [*scores, scores[0]])
    with pytest.raises(InputError, match="twice"):
        sentences(cell, METRICS[0])


def test_place_names_the_test_set_only_where_needed(params):
    cells = [*params["cells"], params["cells"][0] | {"testset": "wmt22"}]
    both = parsed(params | {"cells": cells})
    assert both.place("en-zh", "wmt22") == "En→Zh (wmt22)"
    assert both.place("en-de", "test") == "En→De"
    assert fake_results.DIRECTIONS["en-de"][0] == both.label("directions", "en-de")
