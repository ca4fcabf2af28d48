"""Our numbers beside the paper's, on made-up scores."""

from __future__ import annotations

import fake_results
import pytest
from fake_sets import put
from test_registry import experiment

from entropy_valley.errors import InputError
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


@pytest.mark.parametrize(
    ("over", "problem"),
    [({"backbones": ["llada-8b", "dream-7b"]}, "one backbone"), ({"steps": [16, 32]}, "one T")],
)
def test_what_it_cannot_show_is_said_before_anything_runs(over, problem):
    study = {"layout": "reproduction", "methods": ["oracle", "ratio", "ev"], **over}
    with pytest.raises(InputError, match=problem):
        experiment(studies={"mine": study}, tables={"studies": ["mine"]})
