from __future__ import annotations

import math
from pathlib import Path

import fake_results
import pytest

from entropy_valley import files
from entropy_valley.analysis.costs import costs, with_costs
from entropy_valley.analysis.params import Params
from entropy_valley.analysis.summary import summarise
from entropy_valley.errors import InputError


@pytest.fixture
def cells(tmp_path):
    """Three methods, two seeds, T of 2 and 8, ten sentences."""
    params = fake_results.write(
        tmp_path, backbones={"llada-tiny": (1, 2)}, directions=("en-zh",), sentences=10, steps=(2, 8)
    )
    return Params.parse(files.canonical(params)).cells


def decoding(cells, method, steps, seed):
    cell = next(cell for cell in cells if (cell.method, cell.steps, cell.seed) == (method, steps, seed))
    return Path(cell.decoding)


def test_means_over_sentences_then_over_runs(cells):
    fake_results.change(decoding(cells, "ratio", 8, 2), passes=100)
    table = costs(cells).set_index(["method", "steps"])
    assert len(table) == 6
    assert table.passes["oracle", 2] == 2
    assert table.passes["ratio", 8] == (6 + 10) / 2
    assert (table.calls["ratio", 8], table.calls["ev", 8], table.slots["ev", 8]) == (8, 13, 120)
    assert table.within_steps.loc["ev"].to_list() == [0.1, 0.5]


def test_the_error_of_lengths_is_the_files_own_where_it_has_one(cells):
    for seed in (1, 2):
        fake_results.change(decoding(cells, "ev", 2, seed), length_mae=None)
    fake_results.change(decoding(cells, "ev", 8, 2), length_mae=2.5)
    table = costs(cells).set_index(["method", "steps"])
    assert table.length_mae["ev", 8] == 2.0
    assert math.isnan(table.length_mae["ev", 2])


def test_every_score_gets_its_systems_costs(cells):
    summary = summarise(cells, fake_results.METRICS)
    joined = with_costs(summary, cells)
    assert joined[summary.columns].equals(summary)
    assert joined.passes.notna().all()


def test_a_file_without_a_total_is_named(cells):
    path = decoding(cells, "ev", 8, 1)
    fake_results.change(path, passes=None)
    with pytest.raises(InputError, match=r"ev/med-T8/decoding\.json: no passes"):
        costs(cells)
