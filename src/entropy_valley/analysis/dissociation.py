"""Does a better score need the reference's length? The length error of canvases beside their scores."""

from __future__ import annotations

from collections.abc import Sequence

from entropy_valley.analysis.comparisons import by_run
from entropy_valley.analysis.gap_closure import BASELINES, gap_closures
from entropy_valley.analysis.params import Params, ScoredCell
from entropy_valley.analysis.scores import RUN, collect, require_sentences, sentences
from entropy_valley.analysis.significance import LEVELS, Statistics, bootstrap_means
from entropy_valley.analysis.summary import aggregate
from entropy_valley.late import numpy as np
from entropy_valley.late import pandas as pd
from entropy_valley.scoring.metrics import Metric

PLACE = ("backbone", "direction", "testset")
MAE = Metric("length_mae", "Length error", 2, higher_is_better=False)
"""Mean distance in slots of the canvas from the reference's tokens and its EOS, which is Oracle's canvas."""


def lengths_and_scores(params: Params) -> pd.DataFrame:
    """Means over runs of the main metric and of :data:`MAE` with their gap closures, as ``summary.aggregate``."""
    errors = pd.DataFrame(
        {key: getattr(cell, key) for key in (*RUN, "method")} | {"metric": MAE.name, "value": float(error.mean())}
        for cell, error in length_errors(params.cells).items()
    )
    return aggregate(pd.concat([collect(params.cells, [params.metric]), errors]), [params.metric, MAE])


def length_errors(cells: Sequence[ScoredCell]) -> dict[ScoredCell, pd.Series]:
    """Distance of each sentence's canvas from Oracle's, in slots, by id, in each cell; 0 in Oracle's."""
    found = {}
    for methods in by_run(cells).values():
        oracle = methods["oracle"]
        true = _lengths(oracle)
        for cell in methods.values():
            lengths = _lengths(cell)
            place, of_oracle = (one.within(one.translations_file) for one in (cell, oracle))
            require_sentences(place, lengths.index, of_oracle, true.index)
            found[cell] = (lengths - true).abs()
    return found


def _lengths(cell: ScoredCell) -> pd.Series:
    return pd.Series({row["id"]: row["length"] for row in cell.canvases("length")})


def points(params: Params) -> pd.DataFrame:
    """A row per backbone, direction, test set, method and sentence: ``error`` and ``score``, means over runs."""
    frames = []
    for cell, error in length_errors(params.cells).items():
        frame = pd.DataFrame({"error": error, "score": sentences(cell, params.metric)}).rename_axis("id").reset_index()
        frames.append(frame.assign(**{key: getattr(cell, key) for key in (*PLACE, "method")}))
    return pd.concat(frames).groupby([*PLACE, "method", "id"], sort=False, as_index=False).mean()


def claims(params: Params) -> pd.DataFrame:
    """How much more of the gap in score than of the gap in length error EV closes, in each run over each baseline.

    Columns: those of RUN, ``baseline``, ``ev_length_mae``, ``score_closure``, ``length_closure``, ``delta`` (the first
    closure minus the second) and the limits of its 95 % percentile bootstrap over sentences, ``ci_low`` and
    ``ci_high``. NaN in a run without such gaps.
    """
    errors, rows, sign = length_errors(params.cells), [], 1 if params.metric.higher_is_better else -1
    for run, methods in by_run(params.cells).items():
        scores = {name: sign * sentences(cell, params.metric) for name, cell in methods.items()}
        lengths = {name: -errors[cell] for name, cell in methods.items()}
        for baseline in (name for name in BASELINES if name in methods):
            columns = [of[name] for of in (scores, lengths) for name in ("ev", baseline, "oracle")]
            found = {"baseline": baseline, "ev_length_mae": -float(lengths["ev"].mean())}
            found |= _claim(pd.concat(columns, axis=1).to_numpy(dtype=float), params.how)
            rows.append(dict(zip(RUN, run, strict=True)) | found)
    return pd.DataFrame(rows)


def _claim(values: np.ndarray, how: Statistics) -> dict[str, float]:
    """``values`` has shape (sentences, 6): score, then length, of EV, the baseline and Oracle; higher is better."""
    score, length = (float(closure[0]) for closure in _closures(values.mean(axis=0, keepdims=True)))
    low = high = score - length
    if not np.isnan(low):
        drawn_score, drawn_length = _closures(bootstrap_means(values, how.resamples, how.seed, how.generator))
        low, high = np.nanquantile(drawn_score - drawn_length, LEVELS)
    return {"score_closure": score, "length_closure": length, "delta": score - length, "ci_low": low, "ci_high": high}


def _closures(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The closures in score and in length of means, shape (draws, 6)."""
    return gap_closures(*means[:, :3].T), gap_closures(*means[:, 3:].T)
