"""The paired tests as a file: numbers, and p-values as they are to be printed."""

from __future__ import annotations

import pandas as pd

from entropy_valley.reporting.formats import p_value


def printed(comparisons: pd.DataFrame) -> pd.DataFrame:
    """:func:`analysis.comparisons.compare` with ``p_one_sided_printed`` and ``p_two_sided_printed`` behind."""
    columns = {
        f"{name}_printed": [p_value(p, n) for p, n in zip(comparisons[name], comparisons["resamples"], strict=True)]
        for name in ("p_one_sided", "p_two_sided")
    }
    return comparisons.assign(**columns)
