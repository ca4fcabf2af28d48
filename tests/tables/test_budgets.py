"""The step budget table and figure, on made-up scores."""

from __future__ import annotations

import fake_results
import pytest
from fake_sets import copied, put
from making import made

from entropy_valley.errors import InputError
from entropy_valley.results import SCORES
from entropy_valley.tables.budgets import Budgets

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


def test_one_order_and_one_backbone(params):
    params["cells"] = [copied(cell, order="random") if cell["steps"] == 2 else cell for cell in params["cells"]]
    with pytest.raises(InputError, match="several orders: med, random"):
        made(Budgets, params)
