"""Our numbers beside those that the paper prints for LLaDA-8B-Base (its main table)."""

from __future__ import annotations

from typing import NamedTuple

from entropy_valley.analysis.params import Params
from entropy_valley.analysis.summary import summarise
from entropy_valley.late import pandas as pd

NONE = float("nan")


class Published(NamedTuple):
    """A number of the paper: mean and deviation over its three runs, and of the gap closure; shares, not per cent."""

    mean: float
    std: float
    closure: float = NONE
    closure_std: float = NONE


_METHODS = ("oracle", "ratio", "ev")
_COMET = {
    "en-zh": (Published(0.8610, 0.0013), Published(0.8345, 0.0017), Published(0.8517, 0.0006, 0.649, 0.074)),
    "zh-en": (Published(0.8519, 0.0007), Published(0.8266, 0.0010), Published(0.8431, 0.0004, 0.653, 0.008)),
    "en-de": (Published(0.7382, 0.0090), Published(0.7170, 0.0090), Published(0.7240, 0.0078, 0.330, 0.084)),
}
_BLEU = {
    "en-zh": (Published(40.81, 0.23), Published(36.72, 0.22), Published(38.57, 0.13, 0.453)),
    "zh-en": (Published(27.93, 0.23), Published(23.65, 0.21), Published(25.28, 0.33, 0.381)),
    "en-de": (Published(22.55, 0.77), Published(20.73, 0.68), Published(21.55, 0.85, 0.451)),
}
PAPER = {
    (metric, direction, method): number
    for metric, table in (("comet22", _COMET), ("bleu", _BLEU))
    for direction, numbers in table.items()
    for method, number in zip(_METHODS, numbers, strict=True)
}
"""The paper's numbers by metric (as in files), direction and method."""


def reproduction(params: Params) -> pd.DataFrame:
    """The summary of :func:`summarise`, with ``paper_mean``, ``paper_std``, ``difference`` (ours minus the paper's),
    ``paper_gap_closure_mean`` and ``paper_gap_closure_std``; NaN where the paper has no such number."""
    summary = summarise(params.cells, params.metrics)
    keys = summary[["metric", "direction", "method"]].itertuples(index=False, name=None)
    numbers = [PAPER.get(key, Published(NONE, NONE)) for key in keys]
    summary[["paper_mean", "paper_std", "paper_gap_closure_mean", "paper_gap_closure_std"]] = numbers
    summary["difference"] = summary["mean"] - summary["paper_mean"]
    return summary
