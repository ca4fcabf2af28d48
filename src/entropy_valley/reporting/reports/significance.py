"""The paired tests of every run as a file: numbers, and p-values as they are to be printed."""

from __future__ import annotations

from entropy_valley.analysis.comparisons import compare
from entropy_valley.analysis.params import Params
from entropy_valley.analysis.signatures import provenance
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.late import pandas as pd
from entropy_valley.reporting.formats import p_value
from entropy_valley.reporting.report import Report


class Significance(Report):
    """EV, Ratio and Oracle against each other, sentence by sentence, in each run; a CSV alone."""

    caption = (
        "Paired sentence-level {metric} tests of each run: bootstrap, Wilcoxon signed-rank {zeros}, "
        "and paired Cohen's d. Seeds are never pooled; a p of zero means less than one over the number of "
        "resamples."
    )
    endings = ("csv",)

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        return matrix.table_cells(experiment)

    def described(self, experiment: Experiment) -> str:
        zeros = {"pratt": "with Pratt's treatment of zeros", "wilcox": "without zeros"}
        return super().described(experiment).replace("{zeros}", zeros[experiment.analysis.wilcoxon_zeros])

    def numbers(self, params: Params) -> pd.DataFrame:
        provenance(params.cells, [params.metric])  # only comparable numbers may be subtracted
        return printed(compare(params.cells, **params.test))


def printed(comparisons: pd.DataFrame) -> pd.DataFrame:
    """:func:`analysis.comparisons.compare` with ``p_one_sided_printed`` and ``p_two_sided_printed`` behind."""
    columns = {
        f"{name}_printed": [p_value(p, n) for p, n in zip(comparisons[name], comparisons["resamples"], strict=True)]
        for name in ("p_one_sided", "p_two_sided")
    }
    return comparisons.assign(**columns)
