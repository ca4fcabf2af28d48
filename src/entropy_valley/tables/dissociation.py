"""Does EV's score need the reference's length? Its length error beside its score: a table and a figure."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from entropy_valley.config.matrix import Cell, table_cells
from entropy_valley.results import TRANSLATIONS
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.closure import BASELINES, RUN, aggregate, gap_closures, require_sentences, summarise
from entropy_valley.stats.comparisons import by_run
from entropy_valley.stats.significance import LEVELS, Statistics, bootstrap_means
from entropy_valley.tables import formats
from entropy_valley.tables.base import FigureReport, Report
from entropy_valley.tables.formats import RISING, method
from entropy_valley.tables.pivot import Entry, Regular, Summary
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Note
from entropy_valley.tables.style import INK, METHOD_COLOURS, METHOD_MARKERS, SERIES_COLOURS, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
AT = ("backbone", "direction", "testset")
MAE = Metric("length_mae", "Length error", 2, higher_is_better=False)
"""Mean distance in slots of the canvas from the reference's tokens and its EOS, which is Oracle's canvas."""
LENGTHS = Note(
    "Length error: mean distance of the canvas from the reference's tokens and its EOS, in slots; so Oracle's is 0."
)
STRIP = 0.6  # slots over which the points of one error are spread
PARTS = ("mean", "std")
GOLDEN = 0.6180339887  # its multiples spread evenly between 0 and 1


class _LengthsAndScores(Report):
    """What table and figure share: the main backbone's cells, and their canvases."""

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return table_cells(self.experiment, self.experiment.tables.backbone)

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        return [self.metric]


class Dissociation(_LengthsAndScores, Regular):
    """Length error and score of each method, and the share of both gaps that it closes, by direction."""

    caption = (
        "Length error and {metric} of each length method, mean and standard deviation over training seeds, and the "
        "share of the gap to Oracle that it closes in both. EV's score does not come from the reference's length where "
        "it closes more of the gap in score; the text below says in how many runs."
    )

    def numbers(self, results: Results) -> pd.DataFrame:
        """The means over runs, then the claim in each run (with a ``seed``)."""
        numbers = pd.concat([lengths_and_scores(self, results), claims(self, results)], ignore_index=True)
        return numbers.astype({name: "Int64" for name in numbers if name.endswith("runs")})  # claims have none

    def summary(self, numbers: pd.DataFrame) -> Summary:
        return Summary(numbers[numbers["seed"].isna()])

    def entries(self, summary: Summary) -> list[Entry]:
        return [entry for metric in (MAE, self.metric) for entry in self.scored_entries(summary, metric)]

    def notes(self, results: Results, numbers: pd.DataFrame, summary: Summary) -> Sequence[Note]:
        means, runs = numbers[numbers["seed"].isna()], numbers[numbers["seed"].notna()]
        return (*super().notes(results, means, summary), LENGTHS, *_tested(self, runs))


class DissociationFigure(_LengthsAndScores, FigureReport):
    """Length error against score, a panel for each direction; then the shares of both gaps that EV closes."""

    caption = (
        "Length error against {metric}, by direction, as in the paper. Pale points: the sentences of the first seed; "
        "errors are whole slots, around which their points are spread; the last 1 % are beyond the axis. "
        "Large points: means over training seeds with their standard deviations; the legend has the mean length error, "
        "which is 0 for Oracle. Last panel, ours: the share of the gap between Ratio and Oracle that Entropy-Valley "
        "closes in {metric}, and in length error."
    )
    width, height = 3.15, 2.6

    def numbers(self, results: Results) -> pd.DataFrame:
        """The sentences of the first seed (with an ``id``), then the means over runs."""
        frames = (points(self, results), lengths_and_scores(self, results))
        return pd.concat([frame[frame["method"].isin(RISING)] for frame in frames], ignore_index=True)

    def panels(self, numbers: pd.DataFrame) -> list[Panel]:
        summary, sentences = Summary(numbers[numbers["id"].isna()]), numbers[numbers["id"].notna()]
        clouds = [_panel(self, summary, place, sentences) for place in summary.values("place")]
        return [*clouds, _closures_panel(self, summary)]


# --- The numbers.


def lengths_and_scores(report: Report, results: Results) -> pd.DataFrame:
    """Means over runs of the main metric and of :data:`MAE` with their gap closures, as :func:`closure.aggregate`."""
    errors = pd.DataFrame(
        {key: getattr(cell, key) for key in (*RUN, "method")} | {"metric": MAE.name, "value": float(error.mean())}
        for cell, error in length_errors(results, report.cells).items()
    )
    scores = summarise(results, report.cells, [report.metric])
    return pd.concat([scores, aggregate(errors, [MAE])], ignore_index=True)


def length_errors(results: Results, cells: Sequence[Cell]) -> dict[Cell, pd.Series]:
    """Distance of each sentence's canvas from Oracle's, in slots, by id, in each cell; 0 in Oracle's.

    Of several canvases that were decoded, and of one that changed, the one that the translation is from counts.
    """
    errors = {}
    for methods in by_run(cells).values():
        oracle = methods["oracle"]
        true = _lengths(results, oracle)
        for cell in methods.values():
            lengths = _lengths(results, cell)
            place, of_oracle = (results.place(one, TRANSLATIONS) for one in (cell, oracle))
            require_sentences(place, lengths.index, of_oracle, true.index)
            errors[cell] = (lengths - true).abs()
    return errors


def _lengths(results: Results, cell: Cell) -> pd.Series:
    return pd.Series({row["id"]: row["length"] for row in results.translations(cell, "length")})


def points(report: Report, results: Results) -> pd.DataFrame:
    """A row per backbone, direction, test set, method and sentence of its first seed: ``error`` and ``score``."""
    frames, seeds = [], {}
    for cell, error in length_errors(results, report.cells).items():
        if seeds.setdefault((cell.backbone, cell.direction, cell.testset), cell.seed) == cell.seed:
            scores = results.sentences(cell, report.metric)
            frame = pd.DataFrame({"error": error, "score": scores}).rename_axis("id")
            frames.append(frame.reset_index().assign(**{key: getattr(cell, key) for key in (*AT, "method")}))
    return pd.concat(frames)[[*AT, "method", "id", "error", "score"]]


def claims(report: Report, results: Results) -> pd.DataFrame:
    """How much more of the gap in score than of the gap in length error EV closes, in each run over each baseline.

    Columns: those of RUN, ``baseline``, ``ev_length_mae``, ``score_closure``, ``length_closure``, ``delta`` (the first
    closure minus the second) and the limits of its 95 % percentile bootstrap over sentences, ``ci_low`` and
    ``ci_high``. NaN in a run without such gaps.
    """
    errors, rows, sign = length_errors(results, report.cells), [], 1 if report.metric.higher_is_better else -1
    for run, methods in by_run(report.cells).items():
        scores = {name: sign * results.sentences(cell, report.metric) for name, cell in methods.items()}
        lengths = {name: -errors[cell] for name, cell in methods.items()}
        for baseline in (name for name in BASELINES if name in methods):
            columns = [values[name] for values in (scores, lengths) for name in ("ev", baseline, "oracle")]
            claim = {"baseline": baseline, "ev_length_mae": -float(lengths["ev"].mean())}
            claim |= _claim(pd.concat(columns, axis=1).to_numpy(dtype=float), report.statistics)
            rows.append(dict(zip(RUN, run, strict=True)) | claim)
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


# --- The layout.


def _tested(report: Report, runs: pd.DataFrame) -> list[Note]:
    """In how many runs EV closes more of the gap in score than of that in length, over each baseline."""
    label, errors = report.metric.label, runs["ev_length_mae"]
    far = f"In these runs EV's length error is {errors.min():.2f} to {errors.max():.2f} slots."
    rule = f"The claim holds in a run where EV closes more of the gap in {label} than of the gap in length error, with "
    lines = [Note(far), Note(rule + "the 95 % interval of the difference (paired bootstrap over sentences) above 0.")]
    for baseline in BASELINES:
        tested = runs[runs["baseline"] == baseline]
        if len(tested):
            lines.append(Note(f"Over {method(baseline).short}: {_counted(report, tested)}."))
    return lines


def _counted(report: Report, runs: pd.DataFrame) -> str:
    """``holds in 5 of 9 runs (En→Zh 3 of 3, …), is refuted in 1 (interval below 0)``."""
    holds, refuted = runs["ci_low"] > 0, runs["ci_high"] < 0
    places = runs.assign(holds=holds).groupby(["direction", "testset"], sort=False)["holds"]
    by_place = ", ".join(f"{report.place(*place)} {values.sum()} of {len(values)}" for place, values in places)
    none = runs["delta"].isna().sum()
    gap = f"; {none} without a gap" if none else ""
    return (
        f"holds in {holds.sum()} of {len(runs)} runs ({by_place}), refuted in {refuted.sum()} (interval below 0){gap}"
    )


def _panel(report: Report, summary: Summary, place: tuple[str, str], sentences: pd.DataFrame) -> Panel:
    """One direction, with the mean length errors in the legend below it."""
    here = sentences[(sentences[["direction", "testset"]] == list(place)).all(axis=1)]

    def panel(axes: Axes) -> None:
        for name in RISING:
            _cloud(axes, here[here["method"] == name], name)
        for name in RISING:
            at = {"place": place, "method": name}
            _mean(axes, summary.row(MAE, at), summary.row(report.metric, at))
        axes.set_xlim(-STRIP, here["error"].quantile(0.99) + STRIP)
        axes.set_title(report.place(*place))
        axes.set_xlabel("length error (slots)")
        axes.set_ylabel(report.metric.label)
        _legend_below(axes)

    return panel


def _cloud(axes: Axes, sentences: pd.DataFrame, name: str) -> None:
    """The sentences of a method, those of one error spread around it; all of Oracle's lie on 0."""
    spread = 0 if name == "oracle" else STRIP * (np.arange(len(sentences)) * GOLDEN % 1 - 0.5)
    look = {"s": 5, "marker": METHOD_MARKERS[name], "color": METHOD_COLOURS[name], "alpha": 0.3, "linewidths": 0}
    axes.scatter(sentences["error"] + spread, sentences["score"], rasterized=True, **look)


def _mean(axes: Axes, error: Any, score: Any) -> None:
    """A method's mean over runs."""
    name, colour = error.method, METHOD_COLOURS[error.method]
    label = f"{method(name).short}: {formats.number(error.mean, MAE.decimals)}"
    axes.errorbar(error.mean, score.mean, xerr=error.std, yerr=score.std, fmt="none", ecolor=colour, zorder=3)
    look = {"linestyle": "none", "markersize": 7, "markeredgecolor": "white", "zorder": 3}
    axes.plot(error.mean, score.mean, color=colour, marker=METHOD_MARKERS[name], label=label, **look)


def _closures_panel(report: Report, summary: Summary) -> Panel:
    """EV's closures in score and in length error, in each direction over each baseline."""
    marks, places = {report.metric: ("o", METHOD_COLOURS["ev"]), MAE: ("D", SERIES_COLOURS[3])}, summary.values("place")
    rows = {metric: [summary.row(metric, {"place": place, "method": "ev"}) for place in places] for metric in marks}
    prefixes = [prefix for prefix in BASELINES.values() if hasattr(rows[MAE][0], f"{prefix}_mean")]

    def panel(axes: Axes) -> None:
        at = np.arange(len(places)) - 0.5 * (len(prefixes) - 0.5) * 0.4
        for number, prefix in enumerate(prefixes):
            for metric, (marker, colour) in marks.items():
                mean, std = (np.array([getattr(row, f"{prefix}_{part}") for row in rows[metric]]) for part in PARTS)
                look = {"linestyle": "none", "marker": marker, "color": colour, "markersize": 5}
                face = "white" if number else colour
                axes.errorbar(at, 100 * mean, yerr=100 * std, markerfacecolor=face, **look)
                axes.plot([], [], label="" if number else metric.label, **look)
                at = at + 0.2
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.set_xticks(range(len(places)), [report.place(*place) for place in places])
        axes.set_xlim(-0.6, len(places) - 0.4)
        axes.set_xlabel("filled: over Ratio" + "; open: over Ratio + EOS" * (len(prefixes) > 1))
        axes.set_ylabel("gap closed by EV (%)")
        axes.set_title("Ours: shares of both gaps")
        _legend_below(axes)

    return panel


def _legend_below(axes: Axes) -> None:
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 3}
    axes.legend(handletextpad=0.2, columnspacing=1.2, **below)
