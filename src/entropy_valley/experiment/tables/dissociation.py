"""Where does EV's lead come from: from canvases that are nearer to the reference's length? A table and a figure."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell, all_cells
from entropy_valley.experiment.frames import CELL, MATCHED, PLACE, SETTING
from entropy_valley.experiment.stats.significance import LEVELS, Analysis, bootstrap_means
from entropy_valley.experiment.stats.summary import BASELINES, together
from entropy_valley.experiment.tables import footnotes, formats
from entropy_valley.experiment.tables.formats import RISING
from entropy_valley.experiment.tables.report import Data, Figure, Names, Row, Shown, aligned, figure, table
from entropy_valley.experiment.tables.scores import main_cells
from entropy_valley.experiment.tables.style import INK, METHOD_COLOURS, METHOD_MARKERS, SERIES_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ERROR = "length_mae"
LENGTHS = {  # what a table of canvases has of each method, beside the scores
    ERROR: "Mean length error in slots",  # the distance from the reference's tokens and its EOS: Oracle's canvas
    "on_reference": "On the reference's canvas",  # share of sentences whose canvas is as long as Oracle's
    "full_canvas": "Full canvases",  # share of texts that leave one slot of their canvas to the EOS, and no more
}
CONTROL = "ev_reassigned_1"  # EV's ratios, given to other sentences: the same canvases, not chosen by the source
CANVASES = ("nearer", "equal", "farther")  # of a method to the reference's, compared with the baseline's
PARTS = (*CANVASES, "not_nearer", "all")  # not nearer: equal or farther
STRIP = 0.6  # slots over which the points of one error are spread
GOLDEN = 0.6180339887  # its multiples spread evenly between 0 and 1
READ = ("length", "tokens")


def with_control(experiment: Experiment) -> list[Cell]:
    """The main backbone's cells, and the control where a study decodes it."""
    cells = main_cells(experiment)
    controls = [cell for cell in all_cells(experiment) if cell.method == CONTROL and cell not in cells]
    # A study may decode it in other runs, too.
    return [*cells, *(cell for cell in controls if dataclasses.replace(cell, method="ev") in cells)]


# --- The numbers.


def with_errors(data: Data) -> pd.DataFrame:
    """The sentences with ``error``, the distance of the canvas from Oracle's in slots, which is 0 in Oracle's.

    Of several canvases that were decoded, and of one that changed, the one that the translation is from counts.
    """
    rows = data.sentences
    oracle = rows["length"].where(rows["method"] == "oracle")
    # The one number that is not NaN among the methods of a sentence.
    reference = oracle.groupby([rows[key] for key in (*MATCHED, "id")]).transform("first")
    return rows.assign(error=(rows["length"] - reference).abs())


def lengths_and_scores(data: Data, sentences: pd.DataFrame) -> pd.DataFrame:
    """Means over runs of the main metric and of :data:`LENGTHS`, of each method.

    Columns: those of SETTING, ``metric``, ``method``, ``mean``, ``std`` (sample) and ``runs``.
    """
    error, slots = sentences["error"], sentences["length"]
    # The slot that is left is that of the EOS.
    full = sentences["tokens"].map(len) == slots - 1
    own = sentences.assign(length_mae=error, on_reference=error == 0, full_canvas=full)
    of_runs = own.groupby(CELL)[[*LENGTHS]].mean()
    values = data.cells.set_index(CELL)[[data.metric.name]].join(of_runs).rename_axis(columns="metric")
    groups = values.stack(future_stack=True).groupby([*SETTING, "metric", "method"], sort=False)
    return together(groups.agg(mean="mean", std="std", runs="count").reset_index(), SETTING)


def splits(names: Names, sentences: pd.DataFrame) -> pd.DataFrame:
    """The lead of EV, and of the control, over each baseline, by whose canvas is nearer to the reference's.

    A row per pair of methods and part of PARTS, over runs (without a ``seed``) and in each run. Columns: those of
    SETTING, ``method``, ``baseline``, ``seed``, ``runs`` and those of :func:`split`.
    """
    tables = []
    keys = [*SETTING, "method", "baseline", "seed", "runs"]
    for setting, rows in sentences.groupby(SETTING, sort=False):
        wide = rows.pivot(index="id", columns=["method", "seed"], values=[names.metric.name, "error"])
        # A bootstrap draws the sentences in the order of the test set.
        wide = wide.loc[rows["id"].unique()].sort_index(axis="columns")
        for name, baseline in itertools.product(("ev", CONTROL), BASELINES):
            if {name, baseline} <= {*rows["method"]}:
                # The control may have fewer runs.
                both = (wide[names.metric.name, name] - wide[names.metric.name, baseline]).dropna(axis="columns")
                for seed in (None, *both):
                    leads = both if seed is None else both[[seed]]
                    nearer = (wide["error", baseline] - wide["error", name])[[*leads]]
                    table = split(leads.to_numpy(), nearer.to_numpy(), names.statistics)
                    about = dict(zip(keys, (*setting, name, baseline, seed, leads.shape[1]), strict=True))
                    tables.append(pd.DataFrame(about, table.index).join(table))
    return pd.concat(tables, ignore_index=True)


def split(leads: np.ndarray, nearer: np.ndarray, how: Analysis) -> pd.DataFrame:
    """A mean lead by parts of the sentences, in the mean over runs; with 95 % percentile bootstraps over sentences.

    ``leads`` has the lead on each sentence in each run, ``nearer`` by how many slots the first method's canvas is
    nearer to the reference's; both of shape (sentences, runs). A row per part of PARTS: ``canvas``, the number of
    ``sentences``, the mean ``lead`` on these, what it ``adds`` to the mean over all, and its ``share`` of this mean:
    NaN unless the interval of that mean lies above 0. ``lead_low``, ``lead_high`` and so on are the limits.
    """
    inside = (nearer > 0, nearer == 0, nearer < 0, nearer <= 0, np.full(nearer.shape, True))
    adds = [np.where(part, leads, 0.0).mean(axis=1) for part in inside]
    values = np.column_stack([*adds, *(part.mean(axis=1) for part in inside)])
    drawn = bootstrap_means(values, how)
    # The first row is of the sentences as they are.
    added, sizes = np.hsplit(np.vstack([values.mean(axis=0), drawn]), 2)
    # A share of a lead that may be 0 would be any number.
    whole = added[:, -1:] if np.quantile(added[1:, -1], LEVELS[0]) > 0 else np.nan
    table = pd.DataFrame({"canvas": PARTS, "sentences": sizes[0] * len(leads)})
    # A resample may have no sentence of a part: then it has no lead, and does not count.
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = {"lead": added / sizes, "adds": added, "share": added / whole}
    for name, numbers in statistics.items():
        low, high = pd.DataFrame(numbers[1:]).quantile([*LEVELS]).to_numpy()
        table[name], table[f"{name}_low"], table[f"{name}_high"] = numbers[0], low, high
    return table


def tidy(*frames: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True).astype({"seed": "Int64", "runs": "Int64"})


# --- The table.


@table(
    "Where a lead in {metric} comes from: sentences on which the first method's canvas is nearer to the reference's "
    "than the second's, those on which both are equally far, and those on which the second's is nearer.",
    with_control,
    columns=READ,
    metrics=Names.only_main,
)
def dissociation(data: Data) -> Shown:
    """A section for each pair of methods, with a group of rows for each direction. The numbers are the means of methods
    over runs; then the parts of leads, over runs and in each run (with a ``seed``)."""
    sentences = with_errors(data)
    numbers = tidy(lengths_and_scores(data, sentences), splits(data, sentences))
    parts = numbers[numbers["canvas"].isin([*CANVASES, "all"]) & numbers["seed"].isna()]
    rows = []
    # A section for each pair: the control's come last.
    for part in parts.sort_values(["method", "baseline"], kind="stable").itertuples():
        section, decimals = data.difference(part.method, part.baseline), data.metric.decimals
        first, second = (data.method(name).short for name in (part.method, part.baseline))
        nearer = {"nearer": first, "equal": "equally far", "farther": second, "all": "all"}
        texts = [
            data.place(part.direction, part.testset),
            nearer[part.canvas],
            formats.number(part.sentences, 0 if part.runs == 1 else 1),
            formats.dash(formats.interval(part.lead, part.lead_low, part.lead_high, decimals)),
            formats.interval(part.adds, part.adds_low, part.adds_high, decimals),
            formats.percent(part.share),
        ]
        rows.append(Row(texts, section, shaded=part.canvas == "all"))
    columns = aligned("l", "Direction", "Nearer to the reference's") + aligned("r", "Sentences")
    columns += aligned("c", "Lead on these", "Adds to the lead", "Share of the lead")
    return Shown(numbers, columns, rows, [*reading(data, numbers)], labels=2)


def reading(names: Names, numbers: pd.DataFrame) -> Iterator[str]:
    """Whose numbers these are, how to read them, the paper's claim, and the canvases of all methods."""
    parts = numbers[numbers["canvas"].notna()]
    yield footnotes.setting(names)
    counts = sorted(set(parts.loc[parts["seed"].isna(), "runs"]))
    how_many = " or ".join(map(str, counts)) + (" run" if counts == [1] else " runs")
    yield (
        f"Means over {how_many} (training seeds) [95 % percentile bootstrap over sentences]. "
        "Adds: the sum over these sentences, divided by the number of all. Share: n/a unless the interval of the lead "
        "over all lies above 0."
    )
    yield from footnotes.few_sentences(parts.loc[parts["canvas"] == "all", "sentences"])
    if CONTROL in set(parts["method"]):
        yield f"{names.method(CONTROL).short}: each sentence gets the ratio L/|x| that EV took for another one."
    yield (
        "If EV did not profit from the reference's length, it would also lead where its canvas is not nearer to it "
        "(equally far, or farther). A run counts where the 95 % interval of that lead leaves 0 out."
    )
    tested = parts[parts["seed"].notna() & (parts["method"] == "ev") & (parts["canvas"] == "not_nearer")]
    for baseline, runs in tested.groupby("baseline", sort=False):
        leads, trails = runs["lead_low"] > 0, runs["lead_high"] < 0
        of_places = runs.assign(leads=leads).groupby(PLACE, sort=False)["leads"]
        by_place = ", ".join(f"{names.place(*place)} {values.sum()} of {len(values)}" for place, values in of_places)
        # `EV leads in 0 of 9 runs (En→Zh 0 of 3, …) and trails in 7`
        yield (
            f"Not nearer than {names.method(baseline).short}'s: EV leads in {leads.sum()} of {len(runs)} runs "
            f"({by_place}) and trails in {trails.sum()}."
        )
    for metric, label in LENGTHS.items():
        places = []  # `En→Zh Ratio 1.76, EV 0.53`, shares in per cent
        for place, means in numbers[numbers["metric"] == metric].groupby(PLACE, sort=False):
            texts = []
            for row in means.itertuples():
                text = formats.number(row.mean, 2) if metric == ERROR else formats.percent(row.mean)
                texts.append(f"{names.method(row.method).short} {text}")
            places.append(f"{names.place(*place)} {', '.join(texts)}")
        yield f"{label}: {'; '.join(places)}."
    yield footnotes.ORACLE


# --- The figure.


@figure(
    "Length error against {metric}, by direction, as in the paper. Pale points: the sentences of the first seed; "
    "errors are whole slots, around which their points are spread; the last 1 % are beyond the axis. "
    "Large points: means over training seeds with their standard deviations; the legend has the mean length error, "
    "which is 0 for Oracle. Last panel, ours: what sentences add to EV's lead in {metric}, by whose canvas is "
    "nearer to the reference's (neither: both are equally far), with 95 % intervals over sentences; crosses: the "
    "same of EV's ratios when they are given to other sentences, where a study decodes them. Oracle's length is "
    "not an upper bound.",
    with_control,
    columns=READ,
)
def dissociation_figure(data: Data) -> Figure:
    """A panel for each direction; then where EV's lead comes from. The numbers are the sentences of the first seed
    (with an ``id``), then the means over runs, then the parts of leads."""
    sentences = with_errors(data)
    means = lengths_and_scores(data, sentences)
    first = sentences["seed"] == sentences.groupby(["backbone", *PLACE])["seed"].transform("first")
    points = sentences[first].rename(columns={data.metric.name: "score"})
    points = points[["backbone", *PLACE, "method", "id", "error", "score"]]
    shown = [rows[rows["method"].isin(RISING)] for rows in (points, means)]
    numbers = tidy(*shown, splits(data, sentences))
    clouds = shown[0].groupby(PLACE)
    panels = []
    places = []  # as the config has them
    for place, of_place in means.groupby(PLACE, sort=False):
        panels.append(functools.partial(_clouds, data, place, clouds.get_group(place), of_place))
        places.append(place)
    over_runs = numbers[numbers["canvas"].notna() & numbers["seed"].isna()]
    panels.append(functools.partial(_parts, data, places, over_runs))
    return Figure(numbers, panels, width=3.15, height=2.6)


def _clouds(names: Names, place: Any, sentences: pd.DataFrame, means: pd.DataFrame, axes: Axes) -> None:
    """One direction: the sentences, those of one error spread around it; and means over runs, with the mean length
    errors in the legend below."""
    rows = means.set_index(["metric", "method"])[["mean", "std"]]
    for name in RISING:
        cloud, colour, marker = sentences[sentences["method"] == name], METHOD_COLOURS[name], METHOD_MARKERS[name]
        spread = 0 if name == "oracle" else STRIP * (np.arange(len(cloud)) * GOLDEN % 1 - 0.5)
        axes.scatter(
            cloud["error"] + spread, cloud["score"], s=5, marker=marker, color=colour, alpha=0.3, linewidths=0,
            rasterized=True,
        )  # fmt: skip
        (x, x_std), (y, y_std) = rows.loc[(ERROR, name)], rows.loc[(names.metric.name, name)]
        axes.errorbar(x, y, xerr=x_std, yerr=y_std, fmt="none", ecolor=colour, zorder=3)
        label = f"{names.method(name).short}: {formats.number(x, 2)}"
        axes.plot(x, y, marker, color=colour, markersize=7, markeredgecolor="white", zorder=3, label=label)
    axes.set_xlim(-STRIP, sentences["error"].quantile(0.99) + STRIP)
    _named(axes, names.place(*place), "length error (slots)", names.metric.label)


def _parts(names: Names, places: Sequence[Any], parts: pd.DataFrame, axes: Axes) -> None:
    """What sentences add to the lead over the fair baseline, where it was run, by whose canvas is nearer."""
    # The last one that was run is the fair one.
    baseline = [name for name in BASELINES if name in set(parts["baseline"])][-1]
    rows = parts[parts["baseline"] == baseline].set_index([*PLACE, "method", "canvas"])
    other = names.method(baseline).short
    for number, title in enumerate(("EV", "neither", other)):  # the answers to the panel's title
        # EV's points stand left of the middle, the control's right of it.
        for name, marker, shift in (("ev", "o", -0.07), (CONTROL, "x", 0.07)):
            middles = np.arange(len(places)) + 0.28 * (number - 1) + shift
            adds = rows.reindex([(*place, name, CANVASES[number]) for place in places]).set_axis(middles)
            # The control may be of some places alone.
            adds = adds.dropna(subset="adds")
            reach = adds[["adds_low", "adds_high"]].sub(adds["adds"], axis="index").abs()
            axes.errorbar(
                adds.index, adds["adds"], yerr=reach.to_numpy().T,
                linestyle="none", marker=marker, markersize=5, color=SERIES_COLOURS[number],
                label=title if name == "ev" else None,
            )  # fmt: skip
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.set_xticks(range(len(places)), [names.place(*place) for place in places])
    axes.set_xlim(-0.6, len(places) - 0.4)
    lead = f"part of EV's lead over\n{other} ({names.metric.label})"
    crosses = f"crosses: {names.method(CONTROL).short}" if CONTROL in set(parts["method"]) else ""
    _named(axes, "Ours: nearer to the reference's length", crosses, lead)


def _named(axes: Axes, title: str, x: str, y: str) -> None:
    """The names around a panel, with its legend below."""
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, handlelength=1, handletextpad=0.4, columnspacing=1
    )
