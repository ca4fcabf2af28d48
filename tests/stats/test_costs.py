from __future__ import annotations

import math

import fake_results
import pytest
from fake_sets import put

from entropy_valley.errors import InputError
from entropy_valley.results import TRANSLATIONS
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import costs, summarise, with_costs


@pytest.fixture
def cells(tmp_path):
    """Three methods, two seeds, T of 2 and 8, ten sentences."""
    params = fake_results.write(
        tmp_path, backbones={"llada-tiny": (1, 2)}, directions=("en-zh",), sentences=10, steps=(2, 8)
    )
    return Params(params).cells


def of(cells, method, steps, seed):
    return next(cell for cell in cells if (cell.method, cell.steps, cell.seed) == (method, steps, seed))


def test_means_over_sentences_then_over_runs(cells):
    put(of(cells, "ratio", 8, 2), TRANSLATIONS, passes=100)
    table = costs(cells).set_index(["method", "steps"])
    assert len(table) == 6
    assert table.passes["oracle", 2] == 2
    assert table.passes["ratio", 8] == (6 + 10) / 2
    assert (table.calls["ratio", 8], table.calls["ev", 8], table.slots["ev", 8]) == (8, 13, 120)
    assert table.within_steps.loc["ev"].to_list() == [0.1, 0.5]


def test_the_error_of_lengths_is_the_headers_own_where_it_has_one(cells):
    for seed in (1, 2):
        put(of(cells, "ev", 2, seed), TRANSLATIONS, length_mae=None)
    put(of(cells, "ev", 8, 2), TRANSLATIONS, length_mae=2.5)
    table = costs(cells).set_index(["method", "steps"])
    assert table.length_mae["ev", 8] == 2.0
    assert math.isnan(table.length_mae["ev", 2])


def test_every_score_gets_its_systems_costs(cells):
    summary = summarise(cells, fake_results.METRICS)
    joined = with_costs(summary, cells)
    assert joined[summary.columns].equals(summary)
    assert joined.passes.notna().all()


def test_a_cell_without_a_total_is_named(cells):
    put(of(cells, "ev", 8, 1), TRANSLATIONS, passes=None)
    with pytest.raises(InputError, match=r"translations\.json: test ev med-T8: no passes"):
        costs(cells)
