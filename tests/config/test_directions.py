"""What a direction changes of `corpus` and `training`, and runs with a pool of its training pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_lists import jobs_of

from entropy_valley.config import base_files, load_files, matrix, params
from entropy_valley.config.matrix import CellSet, sets_of
from entropy_valley.data import sampling
from entropy_valley.errors import InputError

PAPER = load_files(base_files(Path(__file__).parents[2]))
POOLED = matrix.Run("de-fr", "llada-8b", 1, "50k")
STUDY = {"directions": ["en-zh"], "pools": ["small"], "methods": ["ev"]}


def trained(experiment, run):
    return json.loads(params.training(experiment, run))["training"]


def with_study(pools=None, **study):
    directions = {"en-zh": {"pools": pools or {}}}
    return {"tables": {"studies": ["mine"]}, "directions": directions, "studies": {"mine": {**STUDY, **study}}}


def test_what_a_direction_changes_reaches_its_own_jobs_alone(load):
    corpus = {"train": 1000, "dev": 10, "test_limit": 7, "filters": {"en": {"words": [2, 9]}}}
    over = {"directions": {"en-zh": {"corpus": corpus, "training": {"max_steps": 5, "warmup": 0}}}}
    changed = load(over)
    spec = json.loads(params.corpus(changed, "en-zh"))
    assert (spec["train"], spec["dev"]) == (1000, 10)
    assert spec["filters"] == {"en": {"words": [2, 9]}, "zh": {"characters": [2, 600]}}
    assert json.loads(params.testset(changed, "en-zh", "wmt22"))["limit"] == 7
    own = trained(changed, matrix.Run("en-zh", "llada-8b", 1))
    assert (own["max_steps"], own["epochs"], own["warmup"], own["learning_rate"]) == (5, None, 0, 2e-4)
    for direction in ("zh-en", "en-de"):
        run = matrix.Run(direction, "llada-8b", 1)
        assert params.training(changed, run) == params.training(PAPER, run)
        assert params.corpus(changed, direction) == params.corpus(PAPER, direction)
        assert params.testset(changed, direction, "wmt22") == params.testset(PAPER, direction, "wmt22")


def test_the_length_of_a_training_replaces_the_other_kind_of_length(load):
    run = matrix.Run("en-zh", "llada-8b", 1)
    steps = {"training": {"epochs": None, "max_steps": 60}}
    for over in (steps, {}):
        shorter = load({**over, "directions": {"en-zh": {"training": {"epochs": 1}}}})
        assert (trained(shorter, run)["epochs"], trained(shorter, run)["max_steps"]) == (1, None)


def test_the_papers_de_fr_has_two_nested_pools_and_one_budget():
    cells = matrix.study_cells(PAPER, "defr_transfer")
    assert {(cell.run.direction, cell.run.pool) for cell in cells} == {("de-fr", "50k"), ("de-fr", "200k")}
    assert "de-fr" not in {cell.run.direction for cell in matrix.cells(PAPER)}
    for pool, pairs in (("50k", 50_000), ("200k", 200_000)):
        spec = trained(PAPER, matrix.Run("de-fr", "llada-8b", 1, pool))
        assert (spec["limit"], spec["max_steps"], spec["epochs"]) == (pairs, 500, None)


def test_a_pool_has_files_and_stores_of_its_own_and_shares_the_corpus():
    cell = next(cell for cell in matrix.study_cells(PAPER, "defr_transfer") if cell.run == POOLED)
    assert POOLED.folder("results") == "results/de-fr/llada-8b/seed1-50k"
    assert (cell.key()["seed"], cell.key()["pool"]) == (1, "50k")
    assert "pool" not in matrix.cells(PAPER)[0].key()  # so that tables that are there stay valid
    made = jobs_of({}).by_output
    scores = made[sets_of(PAPER).home[cell].scores("results")]
    assert scores.wildcards["seed"] == "1-50k" and ".seed1-50k." in scores.name
    adapters = [made[f"results/de-fr/llada-8b/seed1-{pool}/adapter/adapter.json"] for pool in ("50k", "200k")]
    assert adapters[0].spec != adapters[1].spec and adapters[0].inputs == adapters[1].inputs


@given(st.integers(1, 10**6), st.from_regex(r"[a-z0-9]*", fullmatch=True))
def test_a_run_is_known_by_its_name(seed, pool):
    run = matrix.Run("de-fr", "llada-8b", seed, pool)
    assert matrix.Run.named(run.direction, run.backbone, run.name) == run


def test_methods_that_are_fitted_see_the_pool_alone():
    for run, limit in ((POOLED, 50_000), (matrix.Run("en-zh", "llada-8b", 1), None)):
        cells = (matrix.Cell(run, "wmt22", method, "med", 32) for method in ("ev_line", "length_head"))
        fits = json.loads(params.translation(PAPER, CellSet(run, "mine", tuple(cells))))["fits"]
        assert [fits[name].get("limit") for name in ("length_statistics", "length_head")] == [limit, limit]


@given(st.sets(st.tuples(st.text(max_size=3), st.text(max_size=3)), min_size=6), st.data())
def test_the_beginning_of_the_training_pairs_is_what_fewer_pairs_would_be(pairs, data):
    """By the keyed hash, and where all pairs are shuffled."""
    size = data.draw(st.integers(2, len(pairs) - 1))
    pool = data.draw(st.integers(1, size))
    assert sampling.split(pairs, size, 1, 7)[0][:pool] == sampling.split(pairs, pool, 1, 7)[0]
    rows = [(pair, True) for pair in pairs]
    shuffled = [sampling.shuffled_split(lambda: rows, train, 1, 7, "shuffle")[0] for train in (size, pool)]
    assert shuffled[0][:pool] == shuffled[1]


@pytest.mark.parametrize(
    ("over", "problem"),
    [
        ({"directions": {"en-zh": {"training": {"processes": 2}}}}, "en-zh.training.processes = 2: unknown key"),
        ({"directions": {"en-zh": {"corpus": {"seed": 2}}}}, "en-zh.corpus.seed = 2: unknown key"),
        (
            {"directions": {"en-zh": {"training": {"epochs": 1, "max_steps": 2}}}},
            "directions.en-zh.training: give either `epochs` or `max_steps`",
        ),
        ({"directions": {"en-zh": {"pools": {"small": 0}}}}, "en-zh.pools.small = 0: must be greater than 0"),
        (with_study(), "studies.mine: pool 'small' is not defined; `directions.en-zh.pools` has none"),
        (
            with_study({"small": 200_001}),
            "pool 'small' of en-zh has 200001 pairs, but `corpus.train` is 200000; raise that",
        ),
        (
            with_study({"small": 9}, layout="orders", methods=["oracle"]),
            "studies.mine: a table of layout orders tells no pools apart; remove `pools`",
        ),
        (
            with_study({"small": 9}, figure=True),
            "studies.mine: a figure of layout systems tells no pools apart; remove `pools`",
        ),
        (
            with_study({"small": 9}, directions=["en-fr"], beyond_matrix=True),
            "studies.mine.directions = ['en-fr']: 'en-fr' is not defined; did you mean ",
        ),
    ],
)
def test_mistakes(load, over, problem):
    with pytest.raises(InputError) as caught:
        load(over)
    assert problem in str(caught.value)


def test_only_a_study_that_says_so_goes_beyond_the_matrix(load):
    narrow = {"matrix": {"directions": ["en-de"]}, "tables": {"studies": ["mine", "defr_transfer"]}}
    study = {"methods": ["ev"], "directions": ["en-zh", "de-fr"]}
    experiment = load({**narrow, "studies": {"mine": study}})
    assert matrix.study_cells(experiment, "mine") == []
    assert matrix.directions(experiment) == ["en-de", "de-fr"]
    beyond = load({**narrow, "studies": {"mine": {**study, "beyond_matrix": True}}})
    assert [cell.run.direction for cell in matrix.study_cells(beyond, "mine")] == ["en-zh", "de-fr"]
