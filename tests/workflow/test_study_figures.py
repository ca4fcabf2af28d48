"""What studies plan beside their cells: tables and figures by layout, and benchmarks where a column asks for them."""

from __future__ import annotations

import re

import pytest

CELL = "en-zh.llada-tiny.1.grammar"
TWO = {"directions": ["en-zh"], "methods": ["ratio", "ev"]}


def over(**study):
    return {"tables": {"studies": ["mine"]}, "studies": {"mine": {**TWO, **study}}}


def test_budgets_have_a_table_and_a_figure_of_their_own(finished):
    planned = finished.planned(over=over(layout="budgets", methods=["oracle", "ratio", "ev"], steps=[16, 32]))
    cells = {f"{rule} {CELL}.{method}{end}" for rule, end in (("decode", ".med.16"), ("score", "/med-T16"))
             for method in ("oracle", "ratio", "ev")}  # fmt: skip
    assert planned.keys() == cells | {"budgets_table mine", "budgets_figure mine", "all"}


@pytest.mark.parametrize("figure", [True, False])
def test_a_figure_where_it_is_asked_for(finished, figure):
    drawn = {"systems_figure mine"} if figure else set()
    assert finished.planned(over=over(figure=figure)).keys() == {"study_table mine", "all"} | drawn


def test_a_column_of_seconds_times_each_system(finished):
    planned = finished.planned(over=over(columns=["comet", "latency"]))
    timed = {f"latency {CELL}.{method}.med.32" for method in ("ratio", "ev")}
    assert planned.keys() == timed | {"study_table mine", "all"}


def test_nothing_runs_beside_a_timed_job(finished):
    path = "results/demo/en-zh/llada-tiny/seed1/grammar/ev/med-T32/latency.json"
    text = finished.dry_run("--cores", "7", path)
    assert re.search(r"rule latency:\n(?:    .*\n)*    threads: 7\n", text)
