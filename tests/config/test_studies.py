"""Studies: the cells that they ask for, and what a config may get wrong about them."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from entropy_valley import tables
from entropy_valley.config import base_files, load_files, matrix
from entropy_valley.config.expand import overlay
from entropy_valley.config.load import load_merged, read_yaml
from entropy_valley.errors import InputError

ROOT = Path(__file__).parents[2]
BASE = functools.reduce(overlay, map(read_yaml, base_files(ROOT)))
SWEEP = {"seeds": [1, 3], "testset": "wmt22-500", "methods": ["oracle", "ev"], "steps": [16, 32]}


def experiment(listed=("mine",), **study):
    return load_merged(
        overlay(BASE, {"tables": {"studies": list(listed)}, "studies": {"mine": study}}), further=tables.problems
    )


def test_a_study_is_a_product_and_single_systems():
    others = [{"method": "ratio", "order": "sig_first"}, {"method": "ev"}]
    cells = matrix.study_cells(experiment(**SWEEP, directions=["en-de"], others=others), "mine")
    systems = ["oracle/med-T16", "ev/med-T16", "oracle/med-T32", "ev/med-T32", "ratio/sig_first-T32"]
    assert [(cell.run.seed, cell.system) for cell in cells] == [(seed, name) for seed in (1, 3) for name in systems]
    assert {(cell.run.backbone, cell.run.direction, cell.testset) for cell in cells} == {
        ("llada-8b", "en-de", "wmt22-500")
    }


def test_what_a_study_does_not_say_is_the_main_tables():
    cells = matrix.study_cells(experiment(methods=["ev"]), "mine")
    assert cells == [cell for cell in matrix.cells(load_files(base_files(ROOT))) if cell in cells]
    assert [(cell.run.direction, cell.run.seed) for cell in cells] == [("en-zh", 1), ("zh-en", 1), ("en-de", 1)]


def test_all_seeds_are_those_of_each_backbone():
    over = {"matrix": {"seeds_of": {"dream-7b": [2]}}, "tables": {"studies": ["mine"]}}
    study = {"backbones": ["llada-8b", "dream-7b"], "directions": ["en-zh"], "seeds": "all", "methods": ["ev"]}
    cells = matrix.study_cells(load_merged(overlay(BASE, over | {"studies": {"mine": study}})), "mine")
    assert [(cell.run.backbone, cell.run.seed) for cell in cells] == [
        *(("llada-8b", seed) for seed in (1, 2, 3)),
        ("dream-7b", 2),
    ]


def test_methods_and_test_sets_by_direction():
    study = {"methods": {"en-zh": ["ratio"], "en-de": ["ev"]}, "testset": {"en-de": "wmt22-500"}}
    cells = matrix.study_cells(experiment(**study), "mine")
    assert [(cell.run.direction, cell.method, cell.testset) for cell in cells] == [
        ("en-zh", "ratio", "wmt22"),
        ("en-de", "ev", "wmt22-500"),
    ]


def test_only_a_listed_study_is_made():
    unlisted = experiment(listed=[], methods=["nobody"])
    assert matrix.study_cells(unlisted, "mine") == []
    assert matrix.study_cells(experiment(methods=["ev"], directions=["de-fr"]), "mine") == []
    assert set(matrix.all_cells(unlisted)) < set(matrix.all_cells(experiment(**SWEEP)))


def test_methods_of_studies_are_methods_of_the_workflow():
    assert matrix.methods(experiment(methods=["cal"], directions=["en-de"]))["cal"] == ["en-de"]


@pytest.mark.parametrize(
    ("study", "remedy"),
    [
        ({"methods": ["nobody"]}, "method 'nobody' is not defined; `length_methods` has "),
        (
            {"methods": ["ev"], "testset": "wmt99"},
            "test set 'wmt99' is not defined; did you mean wmt22? ",
        ),
        ({"methods": ["ev"], "orders": ["sig"]}, "'sig' is no reveal order"),
        ({"methods": ["ev"], "backbones": ["bert"]}, "'bert' is not defined; `backbones` has "),
        ({"methods": ["ev"], "columns": ["speed"]}, "speed: no such column; there are order, steps"),
        ({"methods": ["ev"], "layout": "rows"}, "is not a layout; there are systems, transfer, orders, categories"),
        ({"methods": ["ev"], "columns": []}, "at least 1 item"),
        ({"methods": ["ev", "ev"]}, "repeats ev"),
        ({"layout": "orders", "methods": ["ev"]}, "needs the method oracle and the order med; add both"),
        ({"layout": "categories", "methods": ["oracle"], "orders": ["med"]}, "compares med with one other order"),
        ({"layout": "transfer", "methods": ["ev"]}, "compares ev with ratio; add ratio"),
        ({"layout": "budgets", "methods": ["oracle", "ratio"]}, "needs the method ev at every T; add it"),
        ({"layout": "budgets", "methods": ["ev"], "orders": ["med", "random"]}, "one reveal order, not of med, random"),
        ({"layout": "checks", "methods": ["ev_sum"]}, "is of the method ev; add it"),
        ({"methods": ["ev"], "backbones": ["llada-8b", "dream-7b"], "figure": True}, "is of one backbone; name one"),
        ({"methods": ["ev"], "backbones": ["llama3-8b"]}, "is autoregressive; studies compare masked backbones"),
        ({"methods": ["ev_reassigned_1"], "columns": ["latency"]}, "takes another's canvases and has no latency"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_named(study, remedy):
    with pytest.raises(InputError) as caught:
        experiment(**study)
    assert any("studies.mine" in line and remedy in line for line in str(caught.value).splitlines()), caught.value


def test_a_listed_study_must_be_there():
    with pytest.raises(InputError, match=r"tables\.studies.*'yours' is not defined; `studies` has .* more"):
        experiment(listed=["yours"], methods=["ev"])


def test_a_method_lacks_the_ratios_of_a_direction():
    with pytest.raises(InputError, match=r"studies\.mine.*'narrow' has no ratios for zh-en; add that key"):
        load_merged(
            overlay(
                BASE,
                {
                    "tables": {"studies": ["mine"]},
                    "studies": {"mine": {"methods": ["narrow"]}},
                    "length_methods": {"narrow": {"method": "ev", "ratios": {"en-zh": [0.8]}}},
                },
            )
        )


def test_a_study_is_no_namesake_of_another_table():
    with pytest.raises(InputError, match=r"studies\.main.*is the name of another table or figure"):
        load_merged(
            overlay(BASE, {"tables": {"studies": ["main"]}, "studies": {"main": {"methods": ["ev"]}}}),
            further=tables.problems,
        )
