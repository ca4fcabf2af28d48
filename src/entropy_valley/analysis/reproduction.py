"""Our numbers beside those that the paper prints for LLaDA-8B-Base (its main table)."""

from __future__ import annotations

from entropy_valley.analysis.params import Params
from entropy_valley.analysis.published import deviation, find
from entropy_valley.analysis.summary import summarise
from entropy_valley.late import pandas as pd

NONE = float("nan")
PUBLISHED = {"comet22": "comet", "bleu": "bleu"}  # our metrics as the transcription calls them
COLUMNS = ["paper_mean", "paper_std", "paper_gap_closure_mean", "paper_gap_closure_std"]


def published(metric: str, direction: str, method: str) -> list[float]:
    """The main table's mean and deviation over runs, and those of the gap closure (shares); NaN where it has none."""
    found = []
    for name in ("", "_closure"):
        mean = find("tab:main", f"{PUBLISHED.get(metric)}{name}", direction=direction, system=method)
        std = deviation(mean) if mean else None
        found += [number.value / number.scale if number else NONE for number in (mean, std)]
    return found


def reproduction(params: Params) -> pd.DataFrame:
    """The summary of :func:`summarise`, with ``paper_mean``, ``paper_std``, ``difference`` (ours minus the paper's),
    ``paper_gap_closure_mean`` and ``paper_gap_closure_std``; NaN where the paper has no such number."""
    summary = summarise(params.cells, params.metrics)
    keys = summary[["metric", "direction", "method"]].itertuples(index=False, name=None)
    summary[COLUMNS] = [published(*key) for key in keys]
    summary["difference"] = summary["mean"] - summary["paper_mean"]
    return summary
