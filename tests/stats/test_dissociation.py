"""Length error beside score, on made-up results whose numbers are known."""

from __future__ import annotations

import fake_results
import numpy as np
import pytest
from fake_sets import put, rows
from fake_texts import LENGTHS, TRUE, add_canvases

from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.stats.cells import Params
from entropy_valley.stats.significance import bootstrap_means
from entropy_valley.tables.dissociation import MAE, claims, lengths_and_scores, points

EXPECTED = {"oracle": 0.9, "ratio": 0.5, "ev": 0.6}  # EV closes a quarter of the gap, and half of that in length


@pytest.fixture
def made(tmp_path):
    """Two runs in two directions, twenty sentences."""
    return fake_results.write(
        tmp_path, backbones={"llada-tiny": (1, 2)}, directions=("en-zh", "en-de"), sentences=20, comet=EXPECTED
    )


def parsed(params):
    return Params(params)


def set_scores(params, score):
    """``score`` of the cell and the number of the sentence."""
    for cell in params["cells"]:
        scores = [row | {"comet22": score(cell, number)} for number, row in enumerate(rows(cell, SCORES))]
        put(cell, SCORES, scores, comet22=float(np.mean([row["comet22"] for row in scores])))
    return params


def test_length_errors_are_distances_from_the_oracles_canvas(made):
    def length(cell, number):
        return LENGTHS[cell["method"]] if cell["method"] != "ev" else (TRUE + 2 if number % 2 else TRUE - cell["seed"])

    summary = lengths_and_scores(parsed(add_canvases(made, length)))
    rows = summary[(summary["metric"] == MAE.name) & (summary["direction"] == "en-zh")].set_index("method")
    assert rows["mean"].to_dict() == {"oracle": 0, "ratio": 4, "ev": (1.5 + 2) / 2}
    assert rows["gap_closure_mean"]["ev"] == pytest.approx(((4 - 1.5) / 4 + (4 - 2) / 4) / 2)
    assert (rows["gap_closure_runs"] == 2).all()


@pytest.mark.parametrize(("lower_is_better", "sign"), [(False, 1), (True, -1)])
def test_a_claim_sets_both_closures_against_each_other_in_each_run(made, lower_is_better, sign):
    params = set_scores(add_canvases(made), lambda cell, _: sign * EXPECTED[cell["method"]])
    params["metrics"][0]["higher_is_better"] = not lower_is_better
    found = claims(parsed(params))
    assert list(found["seed"]) == [1, 2, 1, 2]
    assert set(found["baseline"]) == {"ratio"}
    wanted = {"ev_length_mae": 2, "score_closure": 0.25, "length_closure": 0.5, "delta": -0.25}
    limits = {"ci_low": -0.25, "ci_high": -0.25}  # all sentences are alike
    for row in found.to_dict("records"):
        assert {name: row[name] for name in wanted | limits} == pytest.approx(wanted | limits)


def test_limits_are_those_of_sentences_drawn_together(made):
    lengths = np.random.default_rng(3).integers(1, 9, 20)
    params = add_canvases(
        made,
        lambda cell, number: (
            TRUE + (cell["method"] != "oracle") * int(lengths[number]) // (1 + (cell["method"] == "ev"))
        ),
    )
    row = claims(parsed(params)).iloc[0]
    scores, errors = {}, {}
    for cell in params["cells"][:3]:
        scores[cell["method"]] = [row["comet22"] for row in rows(cell, SCORES)]
        errors[cell["method"]] = [abs(row["canvas"]["length"] - TRUE) for row in rows(cell, TRANSLATIONS)]
    score = {name: bootstrap_means(np.array(values), 200, 1) for name, values in scores.items()}
    error = {name: bootstrap_means(np.array(values, dtype=float), 200, 1) for name, values in errors.items()}
    closed = (score["ev"] - score["ratio"]) / (score["oracle"] - score["ratio"])
    shorter = (error["ratio"] - error["ev"]) / error["ratio"]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(tuple(np.quantile(closed - shorter, [0.025, 0.975])))


def test_a_run_without_a_gap_has_no_claim(made):
    params = add_canvases(made, lambda *_: TRUE)
    assert claims(parsed(params))[["length_closure", "delta", "ci_low", "ci_high"]].isna().all(axis=None)


def test_points_are_the_sentences_of_the_first_run(made):
    params = set_scores(
        add_canvases(made, lambda cell, _: TRUE + cell["seed"] * (cell["method"] == "ev")),
        lambda cell, _: float(cell["seed"]),
    )
    found = points(parsed(params)).groupby("method")[["error", "score"]].agg(["min", "max"])
    assert found.loc["ev"].to_list() == [1, 1, 1, 1]
    assert found.loc["oracle"].to_list() == [0, 0, 1, 1]


def test_canvases_of_other_sentences_are_refused(made):
    params = add_canvases(made)
    put(params["cells"][1], TRANSLATIONS, [{"id": "other", "hypothesis": "", "length": 3}])
    with pytest.raises(InputError, match=r"translations\.jsonl: test ratio med-T8: not the sentences of .*test oracle"):
        points(parsed(params))
