"""Where does EV's lead come from: from canvases that are nearer to the reference's length? A table and a figure."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from entropy_valley.config.matrix import Cell, study_cells
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.significance import LEVELS, Analysis, bootstrap_means
from entropy_valley.stats.summary import BASELINES
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import FigureReport, Report, TableReport
from entropy_valley.tables.formats import RISING
from entropy_valley.tables.of_results import PLACE, RUN, SETTING, by_run, mean
from entropy_valley.tables.pivot import Summary
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Table, TableRow, TableSection
from entropy_valley.tables.style import INK, METHOD_COLOURS, METHOD_MARKERS, SERIES_COLOURS, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
AT = ("backbone", *PLACE)
MAE = Metric("length_mae", "Length error", 2, higher_is_better=False)
"""Mean distance in slots of the canvas from the reference's tokens and its EOS, which is Oracle's canvas."""
MATCHED = Metric("on_reference", "On the reference's canvas", 3, higher_is_better=True)
"""Share of sentences whose canvas is as long as Oracle's."""
FULL = Metric("full_canvas", "Full canvases", 3, higher_is_better=True)
"""Share of texts that leave one slot of their canvas to the EOS, and no more."""
CONTROL = "ev_reassigned_1"  # EV's ratios, given to other sentences: the same canvases, not chosen by the source
CANVASES = ("nearer", "equal", "farther")  # of a method to the reference's, compared with the baseline's
PARTS = (*CANVASES, "not_nearer", "all")  # not nearer: equal or farther
STRIP = 0.6  # slots over which the points of one error are spread
GOLDEN = 0.6180339887  # its multiples spread evenly between 0 and 1


class _LengthsAndScores(Report):
    """What table and figure share: the main backbone's cells, and the control where a study decodes it."""

    texts, bleu = True, False

    @functools.cached_property
    def cells(self) -> list[Cell]:
        like = {(cell.run, cell.testset, cell.order, cell.steps) for cell in self.main_cells}
        studies = (study_cells(self.experiment, name) for name in self.experiment.tables.studies)
        control = [
            cell
            for cells in studies
            for cell in cells
            if cell.method == CONTROL and (cell.run, cell.testset, cell.order, cell.steps) in like
        ]
        return list(dict.fromkeys([*self.main_cells, *control]))


class Dissociation(_LengthsAndScores, TableReport):
    """A method's lead over each baseline, by whose canvas is nearer to the reference's."""

    caption = (
        "Where a lead in {metric} comes from: sentences on which the first method's canvas is nearer to the "
        "reference's than the second's, those on which both are equally far, and those on which the second's is nearer."
    )

    def numbers(self, results: Results) -> pd.DataFrame:
        """The means of methods over runs; then the parts of leads, over runs and in each run (with a ``seed``)."""
        errors = length_errors(results, self.cells)
        frames = (lengths_and_scores(self, results, errors), splits(self, results, errors))
        numbers = pd.concat(frames, ignore_index=True)
        return numbers.astype({"seed": "Int64", "runs": "Int64"})

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        """A section for each pair of methods, with a group of rows for each direction."""
        parts = numbers[numbers["canvas"].isin([*CANVASES, "all"]) & numbers["seed"].isna()]
        sections = []
        for (name, baseline), of_pair in parts.groupby(["method", "baseline"], sort=False):
            places = of_pair.groupby([*PLACE], sort=False)
            groups = [Group(self.place(*place), list(_rows(self, rows))) for place, rows in places]
            sections.append(TableSection(groups, formats.difference(str(name), str(baseline))))
        return Table(COLUMNS, sections, list(_notes(self, numbers)))


class DissociationFigure(_LengthsAndScores, FigureReport):
    """Length error against score, a panel for each direction; then where EV's lead comes from."""

    caption = (
        "Length error against {metric}, by direction, as in the paper. Pale points: the sentences of the first seed; "
        "errors are whole slots, around which their points are spread; the last 1 % are beyond the axis. "
        "Large points: means over training seeds with their standard deviations; the legend has the mean length error, "
        "which is 0 for Oracle. Last panel, ours: what sentences add to EV's lead in {metric}, by whose canvas is "
        "nearer to the reference's (neither: both are equally far), with 95 % intervals over sentences; crosses: the "
        "same of EV's ratios when they are given to other sentences, where a study decodes them."
    )
    width, height = 3.15, 2.6

    def numbers(self, results: Results) -> pd.DataFrame:
        """The sentences of the first seed (with an ``id``), then the means over runs, then the parts of leads."""
        errors = length_errors(results, self.cells)
        frames = (points(self, results, errors), lengths_and_scores(self, results, errors))
        shown = [frame[frame["method"].isin(RISING)] for frame in frames]
        numbers = pd.concat([*shown, splits(self, results, errors)], ignore_index=True)
        return numbers.astype({"seed": "Int64", "runs": "Int64"})

    def panels(self, numbers: pd.DataFrame) -> Sequence[Panel]:
        parts = numbers[numbers["canvas"].notna() & numbers["seed"].isna()]
        summary, sentences = Summary(numbers[numbers["mean"].notna()]), numbers[numbers["id"].notna()]
        places = summary.values("place")
        clouds = (functools.partial(_clouds, self, summary, place, sentences) for place in places)
        return [*clouds, functools.partial(_parts, self, places, parts)]


# --- The numbers.


Errors = Mapping[Cell, pd.Series]  # see length_errors


def lengths_and_scores(report: Report, results: Results, errors: Errors) -> pd.DataFrame:
    """Means over runs of the main metric, :data:`MAE`, :data:`MATCHED` and :data:`FULL`, of each method.

    Columns: those of SETTING, ``method``, ``metric``, ``mean``, ``std`` (sample) and ``runs``.
    """
    rows = []
    for cell, error in errors.items():
        full = [len(row["tokens"]) == row["length"] - 1 for row in results.translations(cell, "length", "tokens")]
        values = results.system_scores(cell, [report.metric])
        values |= {MAE.name: mean(error), MATCHED.name: mean(error == 0), FULL.name: mean(full)}
        about = {key: getattr(cell, key) for key in (*RUN, "method")}
        rows += [about | {"metric": metric, "value": value} for metric, value in values.items()]
    values = pd.DataFrame(rows).groupby([*SETTING, "metric", "method"], sort=False)["value"]
    return values.agg(mean="mean", std="std", runs="count").reset_index()


def length_errors(results: Results, cells: Sequence[Cell]) -> dict[Cell, pd.Series]:
    """Distance of each sentence's canvas from Oracle's, in slots, by id, in each cell; 0 in Oracle's.

    Of several canvases that were decoded, and of one that changed, the one that the translation is from counts.
    """
    errors = {}
    for methods in by_run(cells).values():
        true = _lengths(results, methods["oracle"])
        for cell in methods.values():
            errors[cell] = (_lengths(results, cell) - true).abs()
    return errors


def _lengths(results: Results, cell: Cell) -> pd.Series:
    return pd.Series({row["id"]: row["length"] for row in results.translations(cell, "length")})


def points(report: Report, results: Results, errors: Errors) -> pd.DataFrame:
    """A row per backbone, direction, test set, method and sentence of its first seed: ``error`` and ``score``."""
    frames: list[pd.DataFrame] = []
    seeds: dict[tuple[str, str, str], int] = {}
    for cell, error in errors.items():
        if seeds.setdefault((cell.backbone, cell.direction, cell.testset), cell.seed) == cell.seed:
            scores = results.sentences(cell, report.metric)
            frame = pd.DataFrame({"error": error, "score": scores}).rename_axis("id")
            frames.append(frame.reset_index().assign(**{key: getattr(cell, key) for key in (*AT, "method")}))
    return pd.concat(frames)[[*AT, "method", "id", "error", "score"]]


def splits(report: Report, results: Results, errors: Errors) -> pd.DataFrame:
    """The lead of EV, and of the control, over each baseline, by whose canvas is nearer to the reference's.

    A row per pair of methods and part of PARTS, over runs (without a ``seed``) and in each run. Columns: those of RUN,
    ``method``, ``baseline``, ``runs`` and those of :func:`split`.
    """
    pairs: dict[tuple[Any, ...], dict[int, tuple[pd.Series, pd.Series]]] = {}
    for (*setting, seed), methods in by_run(report.cells).items():
        for name, baseline in itertools.product(("ev", CONTROL), BASELINES):
            if {name, baseline} <= methods.keys():
                first, second = methods[name], methods[baseline]
                leads = results.sentences(first, report.metric) - results.sentences(second, report.metric)
                nearer = errors[second] - errors[first]
                pairs.setdefault((*setting, name, baseline), {})[seed] = (leads, nearer)
    rows = []
    for pair, runs in pairs.items():
        about = dict(zip((*SETTING, "method", "baseline"), pair, strict=True))
        for seed, of_runs in ((None, [*runs.values()]), *((seed, [run]) for seed, run in runs.items())):
            rows += [about | {"seed": seed, "runs": len(of_runs)} | row for row in split(of_runs, report.statistics)]
    return pd.DataFrame(rows)


def split(runs: Sequence[tuple[pd.Series, pd.Series]], how: Analysis) -> Iterator[dict[str, Any]]:
    """A mean lead by parts of the sentences, in the mean over runs; with 95 % percentile bootstraps over sentences.

    Of each run ``runs`` has the lead on each sentence, and by how many slots the first method's canvas is nearer to
    the reference's. A row per part of PARTS: ``canvas``, the number of ``sentences``, the mean ``lead`` on these, what
    it ``adds`` to the mean over all, and its ``share`` of this mean: NaN unless the interval of that mean lies above 0.
    ``lead_low``, ``lead_high`` and so on are the limits.
    """
    ids = runs[0][0].index
    leads, nearer = (np.column_stack([run[part].loc[ids] for run in runs]) for part in (0, 1))
    inside = (nearer > 0, nearer == 0, nearer < 0, nearer <= 0, np.full(nearer.shape, True))
    adds = [np.where(part, leads, 0.0).mean(axis=1) for part in inside]
    values = np.column_stack([*adds, *(part.mean(axis=1) for part in inside)])
    drawn = bootstrap_means(values, how.resamples, how.seed, how.generator)
    means = np.vstack([values.mean(axis=0), drawn])  # the first row is of the sentences as they are
    added, sizes = np.hsplit(means, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = {"lead": added / sizes, "adds": added, "share": added / added[:, -1:]}
    if not np.quantile(drawn[:, len(PARTS) - 1], LEVELS[0]) > 0:
        statistics["share"] = np.full(added.shape, np.nan)
    for place, part in enumerate(PARTS):
        row = {"canvas": part, "sentences": float(sizes[0, place] * len(ids))}
        for name, (value, *draws) in ((name, numbers[:, place]) for name, numbers in statistics.items()):
            low, high = np.nanquantile(draws, LEVELS) if not np.isnan(value) else (np.nan, np.nan)
            row |= {name: float(value), f"{name}_low": float(low), f"{name}_high": float(high)}
        yield row


# --- The layout.

COLUMNS = (
    Column("Direction", align="l"),
    Column("Nearer to the reference's", align="l"),
    Column("Sentences", align="r"),
    Column("Lead on these"),
    Column("Adds to the lead"),
    Column("Share of the lead"),
)


def _rows(report: Report, parts: pd.DataFrame) -> Iterator[TableRow]:
    decimals = report.metric.decimals
    for row in parts.itertuples(index=False):
        names = {
            "nearer": report.method(row.method).short,
            "equal": "equally far",
            "farther": report.method(row.baseline).short,
        }
        texts = (
            names.get(row.canvas, row.canvas),
            formats.number(row.sentences, 0 if row.runs == 1 else 1),
            formats.NONE if math.isnan(row.lead) else formats.interval(row.lead, row.lead_low, row.lead_high, decimals),
            formats.interval(row.adds, row.adds_low, row.adds_high, decimals),
            formats.percent(row.share),
        )
        yield TableRow.of(texts, shaded=row.canvas == "all")


def _notes(report: Report, numbers: pd.DataFrame) -> Iterator[str]:
    """Whose numbers these are, how to read them, the paper's claim, and the canvases of all methods."""
    parts = numbers[numbers["canvas"].notna()]
    yield notes.setting(report)
    counts = sorted(set(parts.loc[parts["seed"].isna(), "runs"]))
    runs = " or ".join(map(str, counts)) + (" run" if counts == [1] else " runs")
    yield (
        f"Means over {runs} (training seeds) [95 % percentile bootstrap over sentences]. "
        "Adds: the sum over these sentences, divided by the number of all. Share: n/a unless the interval of the lead "
        "over all lies above 0."
    )
    yield from notes.few_sentences(parts.loc[parts["canvas"] == "all", "sentences"])
    if CONTROL in set(parts["method"]):
        yield f"{report.method(CONTROL).short}: each sentence gets the ratio L/|x| that EV took for another one."
    yield (
        "If EV did not profit from the reference's length, it would also lead where its canvas is not nearer to it "
        "(equally far, or farther). A run counts where the 95 % interval of that lead leaves 0 out."
    )
    tested = parts[parts["seed"].notna() & (parts["method"] == "ev") & (parts["canvas"] == "not_nearer")]
    for baseline, of_baseline in tested.groupby("baseline", sort=False):
        yield f"Not nearer than {report.method(str(baseline)).short}'s: {_counted(report, of_baseline)}."
    for metric in (MAE, MATCHED, FULL):
        label = f"Mean {metric.label.lower()} in slots" if metric is MAE else metric.label
        yield f"{label}: {_listed(report, numbers[numbers['metric'] == metric.name], metric)}."


def _counted(report: Report, runs: pd.DataFrame) -> str:
    """``EV leads in 0 of 9 runs (En→Zh 0 of 3, …) and trails in 7``."""
    leads, trails = runs["lead_low"] > 0, runs["lead_high"] < 0
    places = runs.assign(leads=leads).groupby([*PLACE], sort=False)["leads"]
    by_place = ", ".join(f"{report.place(*place)} {values.sum()} of {len(values)}" for place, values in places)
    return f"EV leads in {leads.sum()} of {len(runs)} runs ({by_place}) and trails in {trails.sum()}"


def _listed(report: Report, means: pd.DataFrame, metric: Metric) -> str:
    """``En→Zh Ratio 1.76, EV 0.53; …``, shares in per cent."""
    places = []
    for place, rows in means.groupby([*PLACE], sort=False):
        texts = (formats.number(value, 2) if metric is MAE else formats.percent(value) for value in rows["mean"])
        named = (f"{report.method(name).short} {text}" for name, text in zip(rows["method"], texts, strict=True))
        places.append(f"{report.place(*place)} {', '.join(named)}")
    return "; ".join(places)


def _clouds(report: Report, summary: Summary, place: tuple[str, str], sentences: pd.DataFrame, axes: Axes) -> None:
    """One direction, with the mean length errors in the legend below it."""
    here = sentences[(sentences[[*PLACE]] == list(place)).all(axis=1)]
    for name in RISING:
        _cloud(axes, here[here["method"] == name], name)
    for name in RISING:
        at = {"place": place, "method": name}
        _mean(report, axes, summary.row(MAE, at), summary.row(report.metric, at))
    axes.set_xlim(-STRIP, here["error"].quantile(0.99) + STRIP)
    axes.set_title(report.place(*place))
    axes.set_xlabel("length error (slots)")
    axes.set_ylabel(report.metric.label)
    _legend_below(axes)


def _cloud(axes: Axes, sentences: pd.DataFrame, name: str) -> None:
    """The sentences of a method, those of one error spread around it; all of Oracle's lie on 0."""
    spread = 0 if name == "oracle" else STRIP * (np.arange(len(sentences)) * GOLDEN % 1 - 0.5)
    axes.scatter(
        sentences["error"] + spread, sentences["score"], s=5, marker=METHOD_MARKERS[name], color=METHOD_COLOURS[name],
        alpha=0.3, linewidths=0, rasterized=True,
    )  # fmt: skip


def _mean(report: Report, axes: Axes, error: Any, score: Any) -> None:
    """A method's mean over runs."""
    name, colour = error.method, METHOD_COLOURS[error.method]
    label = f"{report.method(name).short}: {formats.number(error.mean, MAE.decimals)}"
    axes.errorbar(error.mean, score.mean, xerr=error.std, yerr=score.std, fmt="none", ecolor=colour, zorder=3)
    axes.plot(
        error.mean, score.mean, METHOD_MARKERS[name], color=colour, markersize=7, markeredgecolor="white", zorder=3,
        label=label,
    )  # fmt: skip


def _parts(report: Report, places: Sequence[tuple[str, str]], parts: pd.DataFrame, axes: Axes) -> None:
    """What sentences add to the lead over the fair baseline, where it was run, by whose canvas is nearer."""
    baseline = [name for name in BASELINES if name in set(parts["baseline"])][-1]
    rows = parts[parts["baseline"] == baseline].set_index([*PLACE, "method", "canvas"])
    looks = (("ev", "o", -0.07), (CONTROL, "x", 0.07))  # marker, and its place beside the middle
    names = {"nearer": "EV", "equal": "neither", "farther": report.method(baseline).short}  # the answers to the title
    for number, canvas in enumerate(CANVASES):
        for name, marker, shift in looks:
            keys = [(*place, name, canvas) for place in places]
            at = [place for place, key in enumerate(keys) if key in rows.index]
            adds = rows.reindex([keys[place] for place in at])
            middle, low, high = (adds[column].to_numpy() for column in ("adds", "adds_low", "adds_high"))
            axes.errorbar(
                np.array(at) + 0.28 * (number - 1) + shift, middle,
                yerr=[(middle - low).tolist(), (high - middle).tolist()], linestyle="none", marker=marker,
                markersize=5, color=SERIES_COLOURS[number], label=names[canvas] if name == "ev" else None,
            )  # fmt: skip
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.set_xticks(range(len(places)), [report.place(*place) for place in places])
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.set_xlabel(f"crosses: {report.method(CONTROL).short}" * (CONTROL in set(parts["method"])))
    axes.set_ylabel(f"part of EV's lead over\n{report.method(baseline).short} ({report.metric.label})")
    axes.set_title("Ours: nearer to the reference's length")
    _legend_below(axes)


def _legend_below(axes: Axes) -> None:
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, handlelength=1, handletextpad=0.4, columnspacing=1
    )
