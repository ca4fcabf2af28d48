"""What studies plan: their cells, tables and figures by layout, and benchmarks where a column asks for them."""

from __future__ import annotations

import re
import time

import pytest
import yaml
from workspace import METHODS, ROOT, by_rule, jobs, loading, on_gpu, scoring

from entropy_valley.experiment import base_files, load_files, matrix

RUN = "en-zh.llada-tiny.1"
CELL = f"{RUN}.grammar"
LOADED = loading([RUN]) | scoring([RUN])
TWO = {"directions": ["en-zh"], "methods": ["ratio", "ev"]}


def over(**study):
    return {"tables": {"studies": ["mine"]}, "studies": {"mine": {**TWO, **study}}}


def test_budgets_have_a_table_and_a_figure_of_their_own(finished):
    planned = finished.planned(over=over(layout="budgets", methods=["oracle", "ratio", "ev"], steps=[16, 32]))
    cells = {f"{rule} {CELL}.{method}{end}" for rule, end in (("decode", ".med.16"), ("score", "/med-T16"))
             for method in ("oracle", "ratio", "ev")}  # fmt: skip
    assert planned.keys() == cells | LOADED | {"table mine", "figure mine", "all"}


@pytest.mark.parametrize("figure", [True, False])
def test_a_figure_where_it_is_asked_for(finished, figure):
    drawn = {"figure mine"} if figure else set()
    assert finished.planned(over=over(figure=figure)).keys() == {"table mine", "all"} | drawn


def test_a_pool_trains_an_adapter_of_its_own_on_the_corpus_that_is_there(finished):
    pools = {"directions": {"en-zh": {"pools": {"2k": 2000}}}}
    planned = finished.planned(over={**over(pools=["2k"]), **pools})
    run = f"{RUN}-2k"
    cells = {f"{job} {run}.grammar.{method}{end}" for method in ("ratio", "ev")
             for job, end in (("canvas", ""), ("decode", ".med.32"), ("score", "/med-T32"))}  # fmt: skip
    assert planned.keys() == cells | loading([run]) | scoring([run]) | {f"train {run}", "table mine", "all"}


def test_a_column_of_seconds_times_each_system(finished):
    planned = finished.planned(over=over(columns=["comet", "latency"]))
    timed = {f"latency {CELL}.{method}.med.32" for method in ("ratio", "ev")}
    assert planned.keys() == timed | {"table mine", "all"}


def test_nothing_runs_beside_a_timed_job(finished):
    path = "results/demo/en-zh/llada-tiny/seed1/grammar/ev/med-T32/latency.json"
    text = finished.dry_run("--printshellcmds", "--cores", "7", path)
    assert re.search(r"rule latency:\n(?:    .*\n)*    threads: 7\n", text)


def test_the_papers_studies(paper):
    """Every table and figure, and each system once, however many studies have it; a model is loaded once a run."""
    start = time.monotonic()
    planned = paper.planned()
    assert time.monotonic() - start < 20
    systems = {"direct_length_baselines", "multi_candidate", "candidate_range", "ratio_sweep", "fwdcount_control"}
    tables = {f"table {name}" for name in systems | {"selector_comparison", "ev_line"}}
    tables |= {"table order_sweep_summary", "table negative_order", "table selector_checks"}
    tables |= {"table full_pareto", "figure pareto", "figure selector_comparison"}
    assert tables <= planned.keys()
    assert set(planned.values()) == {1}
    counts, cells = by_rule(planned), matrix.all_cells(load_files(base_files(ROOT)))
    assert (counts["score"], counts["decode"]) == (len(cells), len([cell for cell in cells if cell.order]))
    assert counts["train"] == 27 + 9 + 4 + 2  # no study trains anything but one of two pools
    assert counts["inference"] + counts["generate"] + counts["latency"] <= 80
    assert counts["comet"] <= 20


def test_no_other_job_of_the_papers_matrix_asks_for_a_gpu(paper):
    text = paper.dry_run("--printshellcmds", over={"device": "cuda"})
    assert on_gpu(text).keys() == {"check", "train", "inference", "generate", "latency", "comet"}


STUDY = {"directions": ["en-zh"], "methods": ["ev", "lr_style"], "others": [{"method": "ev", "steps": 16}]}


def test_a_study_plans_what_it_compares_and_its_table(finished):
    over = {"tables": {"studies": ["mine"]}, "studies": {"mine": STUDY}}
    name = "en-zh.llada-tiny.1.grammar.ev"
    assert finished.planned(over=over).keys() == jobs({"en-zh.llada-tiny.1"}, ["lr_style"]) | {
        f"decode {name}.med.16",
        f"score {name}/med-T16",
        "table mine",
        "all",
    }


def test_a_study_that_is_not_listed_plans_nothing(finished):
    assert not finished.planned(over={"studies": {"mine": STUDY}})


def test_what_is_tuned_is_compared_on_the_development_pairs(finished):
    over = {"tables": {"studies": ["mine"]}, "studies": {"mine": {**STUDY, "testset": "dev", "others": []}}}
    planned = by_rule(finished.planned(over=over))
    assert planned == {
        **dict.fromkeys(("dev_as_testset", "overlap"), 1),
        **dict.fromkeys(("canvas", "decode", "score"), 2),
        **dict.fromkeys(("inference", "comet", "table", "all"), 1),
    }


def test_ratios_dealt_anew_need_evs_canvases_and_no_others(finished):
    methods = [*METHODS, "ev_reassigned_1"]
    over = {"matrix": {"methods": methods}, "length_methods": {"cal": {"patience": 3}}}
    run, target = "en-de.llada-tiny.2", "en-de/llada-tiny/seed2/grammar/ev_reassigned_1"
    name = f"{run}.grammar.ev_reassigned_1"
    planned = finished.planned(f"results/demo/{target}/med-T32/scores.json", over=over)
    made = {f"reassigned_canvas {name}", f"decode {name}.med.32", f"score {name}/med-T32"}
    assert planned.keys() == made | loading([run]) | scoring([run])
    over["length_methods"]["ev"] = {"ratios": {"en-de": [0.9, 1.1]}}
    planned = finished.planned(f"results/demo/{target}/canvas.jsonl", over=over)
    assert planned.keys() == {f"reassigned_canvas {name}", f"canvas {run}.grammar.ev"} | loading([run])


def test_the_table_of_selector_checks_needs_one_backbones_ev_and_its_rivals(finished):
    checks = {"layout": "checks", "methods": ["ev", "ev_sum", "ev_reassigned_deciles_1"], "seeds": [1, 2]}
    over = {"studies": {"mine": checks}, "tables": {"studies": ["mine"]}}
    planned = by_rule(finished.planned("results/demo/tables/mine.md", over=over))
    runs = 2 * 2  # directions, seeds
    made = {"canvas": runs, "reassigned_canvas": runs, "valley": runs, "decode": 2 * runs, "score": 2 * runs}
    assert planned == made | {"inference": runs, "comet": 2, "table": 1}


def test_studies_of_orders(finished):
    """The sweep decodes on the canvases that are there; the challenge subset is a test set of its own."""
    over = {"tables": {"studies": ["order_sweep_summary", "negative_order"]}}
    planned = finished.planned(over=over)
    run, sweep, challenge = "en-zh.llada-tiny.1", "grammar.oracle", "grammar-challenge.oracle"
    studies = yaml.safe_load((ROOT / "config" / "studies.yaml").read_text(encoding="utf-8"))["studies"]
    orders = studies["order_sweep_summary"]["orders"]
    assert planned.keys() == {
        *(f"decode {run}.{sweep}.{order}.32" for order in orders if order != "med"),
        *(f"score {run}.{sweep}/{order}-T32" for order in orders if order != "med"),
        *(f"{rule} en-zh.grammar-challenge" for rule in ("testset", "overlap")),
        f"sig_concentration {run}.grammar-challenge",
        f"canvas {run}.{challenge}",
        *(f"decode {run}.{challenge}.{order}.32" for order in ("med", "sig_first")),
        *(f"score {run}.{challenge}/{order}-T32" for order in ("med", "sig_first")),
        *LOADED,
        "comet en-zh.grammar-challenge",
        "table order_sweep_summary",
        "table negative_order",
        "figure hero",  # its panel of orders
        "all",
    }
