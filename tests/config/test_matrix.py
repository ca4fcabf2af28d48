"""Runs and cells: those of the matrix, of tables, and of studies."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.errors import InputError
from entropy_valley.experiment.config import base_files, load_files, matrix
from entropy_valley.experiment.config.matrix import Cell, Run

ROOT = Path(__file__).parents[2]
PAPER = load_files(base_files(ROOT))
CELL = Cell(Run("en-zh", "llada-8b", 2), "wmt22", "ev", "med", 32)


def test_the_papers_cells_are_its_whole_product():
    cells = matrix.cells(PAPER)
    assert len(cells) == len(set(cells)) == 3 * 3 * 3 * 4
    assert len(matrix.runs(PAPER)) == 27
    # Three autoregressive runs a direction, six variants, and what the studies have that nothing else has.
    studies = set(itertools.chain.from_iterable(matrix.study_cells(PAPER, name) for name in PAPER.tables.studies))
    assert len(matrix.all_cells(PAPER)) == 108 + 9 + 6 * 3 + len(studies - set(cells))
    assert {cell.run.backbone for cell in cells} == {"llada-8b", "dream-7b", "diffullama-7b"}


def test_a_cells_coordinates_are_its_own():
    keys = [tuple(cell.key().items()) for cell in matrix.all_cells(PAPER)]
    assert len(set(keys)) == len(keys)
    assert list(CELL.key().values()) == ["llada-8b", "en-zh", 2, "wmt22", "ev", "med", 32]


@given(st.integers(1, 10**6), st.from_regex(r"[a-z0-9]*", fullmatch=True))
def test_a_run_is_known_by_its_name(seed, pool):
    run = Run("de-fr", "llada-8b", seed, pool)
    assert Run.named(run.direction, run.backbone, run.name) == run


def test_tables_take_one_order_one_budget_and_the_first_test_set(load):
    wide = load({"matrix": {"steps": [16, 32], "orders": ["med", "random"]}})
    assert len(matrix.cells(wide)) == 4 * 108
    assert matrix.table_cells(wide) == matrix.cells(PAPER)
    assert {cell.run.backbone for cell in matrix.table_cells(wide, "dream-7b")} == {"dream-7b"}


def test_valleys_of_the_matrix_of_others_and_of_none(load):
    assert len(matrix.valley_cells(PAPER)) == 27
    assert matrix.valley_cells(load({"valley": {"backbones": []}})) == []
    shown = matrix.valley_cells(load({"valley": {"backbones": ["llada-8b-prefix", "dream-7b"]}}))
    assert [cell.run.backbone for cell in shown] == ["dream-7b"] * 9 + ["llada-8b-prefix"] * 9


# --- Studies.


def study_cells(load, over=None, **study):
    return matrix.study_cells(
        load({"tables": {"studies": ["mine"]}, "studies": {"mine": study}, **(over or {})}), "mine"
    )


def test_a_study_is_a_product_and_single_systems(load):
    product = {"seeds": [1, 3], "testset": "wmt22-500", "methods": ["oracle", "ev"], "steps": [16, 32]}
    others = [{"method": "ratio", "order": "sig_first"}, {"method": "ev"}]
    cells = study_cells(load, **product, directions=["en-de"], others=others)
    systems = ["oracle/med-T16", "ev/med-T16", "oracle/med-T32", "ev/med-T32", "ratio/sig_first-T32"]
    assert [(cell.run.seed, cell.system) for cell in cells] == [(seed, name) for seed in (1, 3) for name in systems]
    places = {(cell.run.backbone, cell.run.direction, cell.testset) for cell in cells}
    assert places == {("llada-8b", "en-de", "wmt22-500")}


def test_all_seeds_are_those_of_each_backbone(load):
    study = {"backbones": ["llada-8b", "dream-7b"], "directions": ["en-zh"], "seeds": "all", "methods": ["ev"]}
    cells = study_cells(load, {"matrix": {"seeds_of": {"dream-7b": [2]}}}, **study)
    runs = [("llada-8b", 1), ("llada-8b", 2), ("llada-8b", 3), ("dream-7b", 2)]
    assert [(cell.run.backbone, cell.run.seed) for cell in cells] == runs


def test_methods_and_test_sets_by_direction(load):
    study = {"methods": {"en-zh": ["ratio"], "en-de": ["ev"]}, "testset": {"en-de": "wmt22-500"}}
    cells = [(cell.run.direction, cell.method, cell.testset) for cell in study_cells(load, **study)]
    assert cells == [("en-zh", "ratio", "wmt22"), ("en-de", "ev", "wmt22-500")]


def test_only_a_study_that_says_so_goes_beyond_the_matrix(load):
    narrow = {"matrix": {"directions": ["en-de"]}, "tables": {"studies": ["mine", "defr_transfer"]}}
    study = {"methods": ["ev"], "directions": ["en-zh", "de-fr"]}
    experiment = load({**narrow, "studies": {"mine": study}})
    assert matrix.study_cells(experiment, "mine") == []
    assert matrix.directions(experiment) == ["en-de", "de-fr"]
    beyond = load({**narrow, "studies": {"mine": {**study, "beyond_matrix": True}}})
    assert [cell.run.direction for cell in matrix.study_cells(beyond, "mine")] == ["en-zh", "de-fr"]


def test_a_cell_can_be_asked_for_alone_by_any_length_method_of_the_config():
    sets, run = matrix.sets_of(PAPER), CELL.run
    alone = sets.named(run, "wmt22.ev_fit-med-T32")
    assert alone.cells == (Cell(run, "wmt22", "ev_fit", "med", 32),) and alone not in sets.all
    with pytest.raises(InputError, match=r"Did you mean wmt22\.ev_fit-med-T32"):
        sets.named(run, "wmt22.ev_fitt-med-T32")
    with pytest.raises(InputError, match=r"seed7: is not a run of this config. Did you mean .*/seed[123]"):
        sets.named(Run(run.direction, run.backbone, 7), "matrix")
