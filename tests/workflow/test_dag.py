"""What Snakemake would run: the whole matrix, nothing at all, and what a change touches, job by job."""

from __future__ import annotations

import time
from collections import Counter

import pytest

AGGREGATES = {"main_table", "crossbb_table", "significance", "hero_figure", "crossbb_figure", "all"}
RUNS = {
    f"{direction}.{run}" for direction in ("en-zh", "en-de") for run in ("llada-tiny.1", "llada-tiny.2", "dream-7b.1")
}
METHODS = ("oracle", "ratio", "ev")


def jobs(runs, methods=METHODS, rules=("canvas", "decode", "score")):
    """The jobs of these runs and methods, by the name that `planned` gives them."""
    names = {f"{run}.grammar.{method}" for run in runs for method in methods}
    return {f"{rule} {name}" + ("" if rule == "canvas" else ".med.32") for rule in rules for name in names}


def trained(runs):
    return {f"train {run}" for run in runs} | jobs(runs)


def of(part):
    return {run for run in RUNS if part in run}


def by_rule(planned):
    return Counter(job.split()[0] for job in planned)


def test_the_papers_matrix(paper):
    start = time.monotonic()
    planned = paper.planned()
    assert time.monotonic() - start < 15
    cells = 3 * 3 * 3 * 3  # backbones, directions, seeds, methods
    assert by_rule(planned) == {
        "corpus": 3,
        "testset": 3,
        "fetch_backbone": 3,
        "fetch_comet": 1,
        "train": 27,
        **dict.fromkeys(("canvas", "decode", "score"), cells),
        **dict.fromkeys(AGGREGATES, 1),
    }


def test_the_main_table_alone_needs_one_backbone(paper):
    planned = paper.planned("results/tables/main.tex")
    assert by_rule(planned)["train"] == 9
    assert {job.split(".")[1] for job in planned if job.startswith("train")} == {"llada-8b"}
    assert not AGGREGATES - {"main_table"} & planned.keys()


def test_a_second_run_does_nothing(finished):
    assert not finished.planned()


@pytest.mark.parametrize(
    "over",
    [
        {"device": "cuda"},
        {"store": False},
        {"models": "elsewhere"},
        {"backbones": {"dream-7b": {"folder": "a/copy"}}},
        {"training": {"checkpoint_every": 7}},
    ],
    ids=lambda over: "-".join(map(str, over.items())),
)
def test_how_and_where_a_job_runs_repeats_nothing(finished, over):
    assert not finished.planned(over=over)


def test_threads_and_cores_repeat_nothing(finished):
    assert not finished.planned("--cores", "7", "--set-threads", "train=4", "decode=3")


def test_evs_ratios_of_one_direction(finished):
    over = {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}}}
    assert finished.planned(over=over).keys() == jobs(of("en-zh"), ["ev"]) | AGGREGATES


def test_ratios_ratio_of_one_direction(finished):
    over = {"length_methods": {"ratio": {"ratios": {"en-de": 1.5}}}}
    assert finished.planned(over=over).keys() == jobs(of("en-de"), ["ratio"]) | AGGREGATES


def test_the_learning_rate_keeps_corpora_and_pretraining(finished):
    over = {"training": {"learning_rate": 5.0e-4}}
    assert finished.planned(over=over).keys() == trained(RUNS) | AGGREGATES


def test_resamples_touch_no_cell(finished):
    assert finished.planned(over={"analysis": {"resamples": 50}}).keys() <= AGGREGATES


def test_a_seed_more_runs_that_seed_alone(finished):
    over = {"matrix": {"seeds": [1, 2, 3]}}
    new = {f"{direction}.llada-tiny.3" for direction in ("en-zh", "en-de")}
    assert finished.planned(over=over).keys() == trained(new) | AGGREGATES


def test_a_prompt_repeats_its_direction_and_backbones_pretrained_on_it(finished):
    over = {"directions": {"en-de": {"prompt": "{src} = "}}}
    expected = {"pretrain llada-tiny"} | trained(of("llada-tiny") | of("en-de")) | AGGREGATES
    assert finished.planned(over=over).keys() == expected


def test_decoding_otherwise_keeps_the_adapters(finished):
    assert finished.planned(over={"decoding": {"precision": "bfloat16"}}).keys() == jobs(RUNS) | AGGREGATES


def test_a_step_budget_more_decodes_on_the_same_canvases(finished):
    planned = finished.planned(
        "results/demo/en-zh/llada-tiny/seed1/grammar/ev/med-T16/scores.json", over={"matrix": {"steps": [16, 32]}}
    )
    assert planned.keys() == {f"{rule} en-zh.llada-tiny.1.grammar.ev.med.16" for rule in ("decode", "score")}
