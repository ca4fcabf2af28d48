"""The table of paired tests, and how many of them hold."""

from __future__ import annotations

import fake_results
import pandas as pd
import pytest
from fake_sets import put
from making import made

from entropy_valley.reporting.reports.significance import Significance, holds
from entropy_valley.results import SCORES


def score(params, method, values):
    """Give every sentence of a method's cells these COMET scores, in turn."""
    for cell in params["cells"]:
        if cell["method"] == method:
            put(cell, SCORES, [{"id": f"t{i}", "comet22": values[i % len(values)]} for i in range(60)])


@pytest.fixture
def worked(tmp_path):
    """EV leads by 0.1 in every sentence, Oracle by nothing on average; two backbones, one direction."""
    runs = {"llada-tiny": (1, 2), "dream-tiny": (1,)}
    params = fake_results.write(tmp_path, backbones=runs, directions=("en-zh",)) | {"resamples": 2000}
    for method, values in {"ratio": [0.6], "ev": [0.7], "oracle": [0.69, 0.71]}.items():
        score(params, method, values)
    return params | {"shown": ["comet22"]}


def test_a_row_for_each_test_of_each_run(worked):
    table, numbers = made(Significance, worked)
    assert [section.heading for section in table.sections] == ["LLaDA-tiny", "Dream-tiny"]
    assert [group.label for group in table.sections[0].groups] == ["En→Zh, seed 1", "En→Zh, seed 2"]
    rows = [[cell.text for cell in row.cells] for row in table.sections[1].groups[0].rows]
    assert [row[0] for row in rows] == ["EV − Ratio", "Oracle − EV", "Oracle − Ratio"]
    assert rows[0][1:4] == ["+0.1000 [+0.1000, +0.1000]", "< 0.0005", "< 0.0005"]
    assert rows[0][4] == "9.5e−15"  # all 60 of one rank and sign: z = √60, two-sided
    assert rows[1][4:] == ["1.0000", "+0.00"]
    assert len(numbers) == 3 * 3


def test_how_many_tests_hold(worked):
    table, _ = made(Significance, worked)
    texts = [note.text for note in table.notes]
    assert "EV − Ratio: 3 of 3 (LLaDA-tiny 2 of 2, Dream-tiny 1 of 1)." in texts
    assert "Oracle − EV: 0 of 3 (LLaDA-tiny 0 of 2, Dream-tiny 0 of 1)." in texts
    assert any("N = 60" in text for text in texts)
    assert not any(text.startswith("sacreBLEU") for text in texts)


def test_a_test_holds_above_zero_and_below_the_level():
    tests = pd.DataFrame({"ci_low": [0.1, 0.1, -0.1, 0.1], "p_one_sided": [0.0, 0.0009, 0.0, 0.001]})
    assert holds(tests).tolist() == [True, True, False, False]


def test_the_fixed_ratio_with_a_slot_is_tested_too(tmp_path):
    scores = fake_results.COMET | {"ratio_eos": 0.84}
    params = fake_results.write(tmp_path, backbones={"llada-tiny": (1,)}, directions=("en-zh",), comet=scores)
    rows = made(Significance, params)[0].sections[0].groups[0].rows
    assert [row.cells[0].text for row in rows] == [
        *("EV − Ratio", "EV − Ratio + EOS", "Oracle − EV", "Oracle − Ratio", "Oracle − Ratio + EOS")
    ]
