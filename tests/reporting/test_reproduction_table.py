"""Our numbers beside the paper's, on made-up scores."""

from __future__ import annotations

import fake_results
import pytest
from fake_sets import put
from making import made
from test_registry import experiment

from entropy_valley.errors import InputError
from entropy_valley.reporting.reports.reproduction import Reproduction
from entropy_valley.results import SCORES


@pytest.fixture
def params(tmp_path):
    comet = {**fake_results.COMET, "ratio_eos": 0.84}
    params = fake_results.write(tmp_path, backbones={"llada-8b": (1,)}, directions=("en-zh", "en-de"), comet=comet)
    params["labels"]["backbones"]["llada-8b"] = "LLaDA-8B-Base"
    scores = {"oracle": 0.87, "ratio": 0.83, "ratio_eos": 0.84, "ev": 0.85}
    for cell in params["cells"]:
        put(cell, SCORES, comet22=scores[cell["method"]], bleu=30.0)
    return params


def test_each_number_stands_beside_the_papers(params):
    table, numbers = made(Reproduction, params)
    en_zh, en_de = table.sections[0].groups
    assert (en_zh.label, en_de.label) == ("En→Zh", "En→De")
    rows = [[cell.text for cell in row.cells] for row in en_zh.rows]
    assert [row[1:6] for row in rows] == [
        ["0.8700", "0.8610 ± 0.0013", "+0.0090", "100%", "–"],
        ["0.8300", "0.8345 ± 0.0017", "−0.0045", "0%", "–"],
        ["0.8400", "–", "–", "25.0%", "–"],
        ["0.8500", "0.8517 ± 0.0006", "−0.0017", "50.0%", "64.9 ± 7.4%"],
    ]
    assert rows[3][6:9] == ["30.00", "38.57 ± 0.13", "−8.57"]
    ours = numbers[(numbers["direction"] == "en-de") & (numbers["metric"] == "comet22")].set_index("method")
    assert ours.loc["ev", "paper_gap_closure_mean"] == 0.33
    assert ours["difference"].isna().to_dict() == {"oracle": False, "ratio": False, "ev": False, "ratio_eos": True}


@pytest.mark.parametrize(
    ("over", "problem"),
    [({"backbones": ["llada-8b", "dream-7b"]}, "one backbone"), ({"steps": [16, 32]}, "one T")],
)
def test_what_it_cannot_show_is_said_before_anything_runs(over, problem):
    study = {"layout": "reproduction", "methods": ["oracle", "ratio", "ev"], **over}
    with pytest.raises(InputError, match=problem):
        experiment(studies={"mine": study}, tables={"studies": ["mine"]})
