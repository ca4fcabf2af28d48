"""The table and the figures of all-mask canvases, from made-up results."""

from __future__ import annotations

import fake_results
import pytest
from making import drawn, made

from entropy_valley.reporting.reports.checks import Checks, SelectorChecksFigure
from entropy_valley.reporting.reports.entropy_valley import EntropyValley


@pytest.fixture
def params(tmp_path):
    return fake_results.write_selector_checks(tmp_path)


def rows(table):
    return {
        (group.label, row.cells[0].text): [cell.text for cell in row.cells[1:]]
        for section in table.sections
        for group in section.groups
        for row in group.rows
    }


def test_every_check_has_its_rows(params):
    table, _ = made(Checks, params)
    found = rows(table)
    assert [column.title for column in table.columns] == ["Check", "", "En→Zh", "Zh→En", "En→De"]
    assert found["Ratios that EV takes", "1"] == ["0.50: 35.0% (14)"] * 3
    assert all(text.startswith("0.75: ") for text in found["Mean all-mask entropy by ratio", "lowest"])
    assert list(dict.fromkeys(label for label, _ in found))[3:] == [
        "EV − reassigned ratios",
        "EV − reassigned within deciles of |x|",
        "EV − EV, summed entropy",
        "EV − EV, median entropy",
    ]
    assert [item for label, item in found if label == "EV − reassigned ratios"] == ["seed 1", "seed 2"]
    assert found["EV − reassigned ratios", "seed 2"][0].startswith("+0.0")
    assert "mean over 2 or 1 permutations" in " ".join(note.text for note in table.notes)


def test_what_was_not_run_has_no_rows(params):
    cells = [cell for cell in params["cells"] if cell["method"] in ("ev", "ev_sum")]
    table, _ = made(Checks, params | {"cells": cells})
    assert not any("eassigned" in note.text for note in table.notes)
    assert {label for label, _ in rows(table)} == {
        "Mean all-mask entropy by ratio",
        "Ratios that EV takes",
        "toy COMET",
        "EV − EV, summed entropy",
    }


def test_a_panel_for_each_direction_and_a_line_for_each_backbone(params):
    axes = drawn(EntropyValley, params)[0].axes
    assert [one.get_title() for one in axes] == ["En→Zh", "Zh→En", "En→De"]
    labels = [[line.get_label() for line in one.lines if not line.get_label().startswith("_")] for one in axes]
    assert labels == [["LLaDA-tiny"]] * 3
    assert list(axes[0].lines[-1].get_xdata()) == [-2, -1, 0, 1, 2]


def test_the_sweep_marks_the_corpus_ratio_the_grid_and_the_minimum(params):
    axes = drawn(SelectorChecksFigure, params)[0].axes
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["LLaDA-tiny", "Ratio", "EV's grid"]
    assert all(one.texts[0].get_text().endswith(" at 0.75") for one in axes)
    curve, ratio, grid = axes[0].lines
    assert list(curve.get_xdata()) == [0.4, 0.5, 0.75, 1.0, 1.5]
    assert (ratio.get_xdata()[0], tuple(grid.get_xdata())) == (0.8, fake_results.GRID)
