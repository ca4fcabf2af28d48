"""The table of paired tests, and how many of them hold."""

from __future__ import annotations

import fake_results
import pandas as pd
from making import made

from entropy_valley.tables.full_significance import Significance, holds


def test_a_test_holds_above_zero_and_below_the_level():
    tests = pd.DataFrame({"ci_low": [0.1, 0.1, -0.1, 0.1], "p_two_sided": [0.0, 0.0009, 0.0, 0.001]})
    assert holds(tests).tolist() == [True, True, False, False]


def test_the_fixed_ratio_with_a_slot_is_tested_too(tmp_path):
    scores = fake_results.COMET | {"ratio_eos": 0.84}
    params = fake_results.write(tmp_path, backbones={"llada-tiny": (1,)}, directions=("en-zh",), comet=scores)
    rows = made(Significance, params)[0].sections[0].groups[0].rows
    assert [row.cells[0].text for row in rows] == [
        *("EV − Ratio", "EV − Ratio + EOS", "Oracle − EV", "Oracle − Ratio", "Oracle − Ratio + EOS")
    ]
