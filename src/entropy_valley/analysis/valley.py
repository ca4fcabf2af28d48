"""Curves of all-mask entropy, from the diagnostics of runs."""

from __future__ import annotations

from collections.abc import Iterable

from entropy_valley.analysis.gap_closure import mean, sample_std
from entropy_valley.analysis.params import ScoredCell
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd
from entropy_valley.results import REMEDY

AXES = ("offsets", "offsets_complete", "ratios")
PLACE = ["backbone", "direction", "testset"]
POINT = [*PLACE, "axis", "at"]
NORMAL = 1.96  # standard errors on either side: 95 % of a mean over many sentences
OVER_RUNS, OVER_SENTENCES = "std over runs", "95% of the mean over sentences"


def curves(cells: Iterable[ScoredCell]) -> pd.DataFrame:
    """One row per run, axis (one of ``AXES``) and place on it (``at``: a slot offset from the reference, or a ratio).

    Columns: those of POINT, ``seed``, ``mean`` entropy in nats, ``standard_error``, ``mean_length`` in slots,
    ``sentences``; and ``lowest``, a share, on the axis of complete sentences. Cells of one run and
    test set share their curves.
    """
    runs = {(cell.diagnostics_file, cell.testset): cell for cell in cells}
    rows = [
        {key: getattr(cell, key) for key in (*PLACE, "seed")} | {"axis": axis, **point}
        for cell in runs.values()
        for axis, points in _axes(cell).items()
        for point in points
    ]
    return pd.DataFrame(rows).astype({"standard_error": float})


def _axes(cell: ScoredCell) -> dict[str, list[dict[str, float]]]:
    content = cell.diagnostics("valley")
    if any(axis not in content for axis in AXES):
        raise InputError(cell.within(cell.diagnostics_file), f"lacks one of {', '.join(AXES)}", REMEDY)
    return {axis: content[axis] for axis in AXES}


def over_runs(points: pd.DataFrame) -> pd.DataFrame:
    """:func:`curves` averaged over seeds, one row per POINT: ``mean``, ``low``, ``high``, ``spread``, ``runs``, and the
    means of ``sentences``, ``mean_length`` and ``lowest``.

    ``spread`` says what lies between low and high: the sample standard deviation over runs on either side; or, for a
    single run, 95 % of the mean over its sentences (normal approximation).
    """
    rows = [dict(zip(POINT, key, strict=True)) | _average(group) for key, group in points.groupby(POINT, sort=False)]
    return pd.DataFrame(rows)


def _average(group: pd.DataFrame) -> dict[str, object]:
    centre, several = mean(group["mean"]), len(group) > 1
    reach = sample_std(group["mean"]) if several else NORMAL * float(group["standard_error"].iloc[0])
    averages = {name: group[name].mean() for name in ("sentences", "mean_length", "lowest") if name in group}
    band = {"low": centre - reach, "high": centre + reach, "spread": OVER_RUNS if several else OVER_SENTENCES}
    return {"mean": centre, **band, "runs": len(group), **averages}
