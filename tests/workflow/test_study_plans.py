"""What studies plan: sets of their own cells, tables and figures by layout, timings where a column asks for them."""

from __future__ import annotations

import re
import time

import pytest
from workspace import METHODS, ROOT, by_rule, on_gpu, sets

from entropy_valley.config import base_files, load_files, matrix
from entropy_valley.config.matrix import sets_of

RUN = "en-zh.llada-tiny.1"
TWO = {"directions": ["en-zh"], "methods": ["ratio", "ev"]}
MINE = sets([RUN], "mine")


def over(**study):
    return {"tables": {"studies": ["mine"]}, "studies": {"mine": {**TWO, **study}}}


def test_a_study_translates_what_no_other_set_has(finished):
    """Of four systems, two are at home in the matrix."""
    study = over(methods=["ev", "lr_style"], others=[{"method": "ev", "steps": 16}, {"method": "ratio"}])
    assert finished.planned(over=study).keys() == MINE | {"table mine", "all"}
    experiment = load_files([*base_files(ROOT), *(ROOT / name for name in ("config/demo.yaml",))])
    cells = [cell for one in sets_of(experiment).all for cell in one.cells]
    assert sorted(cells, key=str) == sorted(matrix.all_cells(experiment), key=str)  # each once


@pytest.mark.parametrize("figure", [True, False])
def test_a_figure_where_it_is_asked_for(finished, figure):
    drawn = {"figure mine"} if figure else set()
    assert finished.planned(over=over(figure=figure)).keys() == {"table mine", "all"} | drawn


def test_budgets_have_a_table_and_a_figure_of_their_own(finished):
    planned = finished.planned(over=over(layout="budgets", methods=["oracle", "ratio", "ev"], steps=[16, 32]))
    assert planned.keys() == MINE | {"table mine", "figure mine", "all"}


def test_a_study_that_is_not_listed_plans_nothing(finished):
    assert not finished.planned(over={"studies": {"mine": {**TWO, "methods": ["lr_style"]}}})


def test_a_pool_trains_an_adapter_of_its_own_on_the_corpus_that_is_there(finished):
    pools = {"directions": {"en-zh": {"pools": {"2k": 2000}}}}
    planned = finished.planned(over={**over(pools=["2k"]), **pools})
    run = f"{RUN}-2k"
    assert planned.keys() == sets([run], "mine") | {f"train {run}", "table mine", "all"}


def test_a_column_of_seconds_times_each_system(finished):
    planned = finished.planned(over=over(columns=["comet", "latency"]))
    timed = {f"latency {RUN}.grammar.{method}.med.32" for method in ("ratio", "ev")}
    assert planned.keys() == timed | {"table mine", "all"}


def test_nothing_runs_beside_a_timed_job(finished):
    path = "results/demo/en-zh/llada-tiny/seed1/latency/grammar/ev/med-T32.json"
    text = finished.dry_run("--printshellcmds", "--cores", "7", path)
    assert re.search(r"rule latency:\n(?:    .*\n)*    threads: 7\n", text)


def test_what_is_tuned_is_compared_on_the_development_pairs(finished):
    planned = by_rule(finished.planned(over=over(testset="dev")))
    assert planned == dict.fromkeys(("dev_as_testset", "overlap", "translate", "score", "table", "all"), 1)


def test_the_table_of_selector_checks_reads_all_mask_canvases(finished):
    checks = {"layout": "checks", "methods": ["ev", "ev_sum", "ev_reassigned_deciles_1"], "seeds": [1, 2]}
    mine = {"studies": {"mine": checks}, "tables": {"studies": ["mine"]}}
    planned = by_rule(finished.planned("results/demo/tables/mine.md", over=mine))
    assert planned == {"translate": 4, "score": 4, "diagnose": 4, "table": 1}  # directions, seeds


def test_studies_of_orders(finished):
    """The challenge subset is a test set of its own, and its sentences are read with and without their sources."""
    planned = finished.planned(over={"tables": {"studies": ["order_sweep_summary", "negative_order"]}})
    studies = {"order_sweep_summary", "negative_order"}
    made = {f"{rule} en-zh.grammar-challenge" for rule in ("testset", "overlap")} | {f"diagnose {RUN}"}
    made |= {name for study in studies for name in sets([RUN], study)}
    shown = {f"table {study}" for study in studies} | {"figure hero", "all"}  # its panel of orders
    assert planned.keys() == made | shown


def test_the_papers_studies(paper):
    """Every table and figure, each set once, and no further training."""
    start = time.monotonic()
    planned = paper.planned()
    assert time.monotonic() - start < 20
    systems = {"direct_length_baselines", "multi_candidate", "candidate_range", "ratio_sweep", "fwdcount_control"}
    tables = {f"table {name}" for name in systems | {"selector_comparison", "ev_line"}}
    tables |= {"table order_sweep_summary", "table negative_order", "table selector_checks"}
    tables |= {"table full_pareto", "figure pareto", "figure selector_comparison"}
    assert tables <= planned.keys()
    assert set(planned.values()) == {1}
    assert by_rule(planned)["train"] == 27 + 9 + 4 + 2  # no study trains anything but one of two pools


def test_what_asks_for_a_gpu(paper):
    text = paper.dry_run("--printshellcmds", over={"device": "cuda"})
    assert on_gpu(text).keys() == {"train", "translate", "diagnose", "latency", "score"}


def test_a_control_is_in_the_set_of_the_method_whose_canvases_it_deals(finished):
    methods = [*METHODS, "ev_reassigned_1"]
    planned = finished.planned(
        "results/demo/en-de/llada-tiny/seed2/grammar.ev_reassigned_1-med-T32/scores.jsonl",
        over={"matrix": {"methods": methods}},
    )
    assert planned.keys() == sets(["en-de.llada-tiny.2"], "grammar.ev_reassigned_1-med-T32")
