"""The step budget table and figure, on made-up scores."""

from __future__ import annotations

import fake_results
import pytest
from fake_sets import copied, put
from making import drawn, made

from entropy_valley.errors import InputError
from entropy_valley.reporting import style
from entropy_valley.reporting.reports.budgets import Budgets, BudgetsFigure
from entropy_valley.results import SCORES

STEPS = (2, 4, 8, 16, 128)
EXPECTED = {  # of En→Zh: EV above Oracle, no gap, part of it, below Ratio, all of it
    2: (0.70, 0.75, 0.60),
    4: (0.70, 0.75, 0.70),
    8: (0.80, 0.775, 0.70),
    16: (0.80, 0.65, 0.70),
    128: (0.80, 0.80, 0.70),
}


@pytest.fixture
def params(tmp_path):
    params = fake_results.write(tmp_path, backbones={"llada-tiny": (1,)}, directions=("en-zh", "en-de"), steps=STEPS)
    for cell in params["cells"]:
        if cell["direction"] == "en-zh":
            values = dict(zip(("oracle", "ev", "ratio"), EXPECTED[cell["steps"]], strict=True))
            put(cell, SCORES, comet22=values[cell["method"]])
    return params


def test_a_row_for_each_budget(params):
    table, _ = made(Budgets, params)
    assert [column.title for column in table.columns] == [
        *("Direction", "T", "Oracle", "EV", "Ratio", "Gap closure", "L ≤ T")
    ]
    en_zh, en_de = table.sections[0].groups
    assert (en_zh.label, en_de.label, len(en_de.rows)) == ("En→Zh", "En→De", len(STEPS))
    assert [[cell.text for cell in row.cells] for row in en_zh.rows] == [
        ["2", "0.7000", "0.7500", "0.6000", "150.0%", "11.7%"],
        ["4", "0.7000", "0.7500", "0.7000", "n/a", "25.0%"],
        ["8", "0.8000", "0.7750", "0.7000", "75.0%", "50.0%"],
        ["16", "0.8000", "0.6500", "0.7000", "−50.0%", "100.0%"],
        ["128", "0.8000", "0.8000", "0.7000", "100.0%", "100.0%"],
    ]
    assert [row.cells[4].bold for row in en_zh.rows] == [True, False, False, False, True]
    assert any(note.text == "One run (training seed)." for note in table.notes)


def test_several_runs_have_deviations(tmp_path):
    table, _ = made(Budgets, fake_results.write(tmp_path, directions=("en-zh",), steps=(4, 8)))
    row = table.sections[0].groups[0].rows[0]
    assert all(" ± 0.0" in row.cells[place].text for place in (1, 2, 3))


def test_the_figure_has_a_panel_for_each_direction_and_a_line_for_each_method(params):
    figure, _ = drawn(BudgetsFigure, params)
    first, second = figure.axes
    assert [axes.get_title() for axes in (first, second)] == ["En→Zh", "En→De"]
    lines = {container.get_label(): container.lines[0] for container in first.containers}
    assert list(lines) == ["Ratio", "EV", "Oracle"]
    assert lines["EV"].get_xdata().tolist() == list(STEPS)
    assert lines["EV"].get_ydata().tolist() == [EXPECTED[steps][1] for steps in STEPS]
    assert lines["EV"].get_color() == style.METHOD_COLOURS["ev"]
    assert [label.get_text() for label in first.get_xticklabels()] == list(map(str, STEPS))


def test_one_order_and_one_backbone(params):
    params["cells"] = [copied(cell, order="random") if cell["steps"] == 2 else cell for cell in params["cells"]]
    with pytest.raises(InputError, match="several orders: med, random"):
        made(Budgets, params)
