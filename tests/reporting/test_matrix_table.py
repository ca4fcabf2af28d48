"""The table of several reveal orders and step budgets, on made-up scores."""

from __future__ import annotations

import fake_results
import pytest
from fake_sets import copied
from making import made

from entropy_valley.reporting.reports.matrix import Matrix

ORDERS = {
    "med": {"order": "med", "settings": {}, "source_guided": False},
    "hybrid_25": {"order": "hybrid", "settings": {"p": 0.25}, "source_guided": True},
}
TITLES = ["Direction", "T", "Method", *["Mean ± Std", "Gap closure"] * 2]


@pytest.fixture
def params(tmp_path):
    """Two backbones, one with a single seed; two budgets, and a second order under the first of them."""
    params = fake_results.write(
        tmp_path, backbones={"llada-tiny": (1, 2), "dream-tiny": (1,)}, directions=("en-zh", "en-de"), steps=(8, 4)
    )
    other = [copied(cell, order="hybrid_25") for cell in params["cells"] if cell["steps"] == 8]
    return params | {"cells": params["cells"] + other, "orders": ORDERS, "main": "med"}


def test_each_order_and_budget_has_its_methods_in_each_direction(params):
    table, numbers = made(Matrix, params)
    assert [column.title for column in table.columns] == TITLES
    orders = ("MED", "Hybrid MED→SIG, p = 0.25")
    headings = [f"{backbone}, {order}" for backbone in ("LLaDA-tiny", "Dream-tiny") for order in orders]
    assert [section.heading for section in table.sections] == headings
    en_zh, en_de = table.sections[0].groups
    assert (en_zh.label, en_de.label) == ("En→Zh", "En→De")
    assert [[cell.text for cell in row.cells[:2]] for row in en_zh.rows] == [
        *(["8", "Oracle length"], ["", "Fixed ratio 0.8"], ["", "Entropy-Valley"]),
        *(["4", "Oracle length"], ["", "Fixed ratio 0.8"], ["", "Entropy-Valley"]),
    ]
    assert [row.cells[0].text for row in table.sections[1].groups[0].rows] == ["8", "", ""]
    assert [row.shaded for row in en_zh.rows] == [False, False, True] * 2
    assert all("±" in row.cells[2].text for row in en_zh.rows)
    assert len(numbers) == 2 * 2 * 3 * 3 * 3  # backbones, directions, settings, methods, metrics


def test_one_seed_has_no_deviation_in_its_titles(params):
    table, _ = made(Matrix, params | {"cells": [cell for cell in params["cells"] if cell["seed"] == 1]})
    assert [column.title for column in table.columns] == [title.replace("Mean ± Std", "One run") for title in TITLES]


def test_numbers_are_those_of_their_own_setting(params):
    table, numbers = made(Matrix, params)
    of = numbers.query("backbone == 'dream-tiny' and direction == 'en-de' and metric == 'comet22' and method == 'ev'")
    found = dict(zip(zip(of["order"], of["steps"], strict=True), of["mean"], strict=True))
    _, _, med, hybrid = table.sections
    rows = [row for section in (med, hybrid) for row in section.groups[1].rows if row.shaded]
    expected = [found["med", 8], found["med", 4], found["hybrid_25", 8]]
    assert [row.cells[2].text for row in rows] == [f"{value:.4f}" for value in expected]
    assert found["med", 4] < found["med", 8]


def test_notes_name_orders_budgets_and_decoders(params):
    texts = [note.text for note in made(Matrix, params)[0].notes]
    assert texts[0] == "Backbones: LLaDA-tiny, Dream-tiny. Reveal orders: MED; Hybrid MED→SIG, p = 0.25. T = 8, 4."
    assert texts.count("decoder:") == 2  # one for each budget: the made-up cells of both orders say the same
