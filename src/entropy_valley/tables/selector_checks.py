"""What stands behind EV's choices: a study's table with a group of rows for each check, and the sweep as a figure."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pandas as pd

from entropy_valley.config.matrix import Cell, valley_cells
from entropy_valley.config.methods import method_settings
from entropy_valley.errors import InputError
from entropy_valley.lengths.base import candidate_length
from entropy_valley.results import REMEDY, TRANSLATIONS
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import FigureReport, OfStudy, Report, TableReport
from entropy_valley.tables.formats import ordered
from entropy_valley.tables.of_results import PLACE, by_run, compare_means, summarise
from entropy_valley.tables.pivot import placed
from entropy_valley.tables.reader import Results, diagnostics_file
from entropy_valley.tables.render import Column, Group, Table, TableRow, TableSection
from entropy_valley.tables.style import BACKBONE_COLOURS, METHOD_COLOURS, ON_WHITE, Panel, legend_above
from entropy_valley.tables.valley_figure import curves, draw_line, over_runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
METHOD = "ev"
ALTERNATIVES = ("ev_sum", "ev_normalised", "ev_median")
PERMUTATION = re.compile(r"(ev_reassigned(?:_deciles)?)_\d+")
Numbers = Mapping[str, float]
Measured = tuple[tuple[str, str], int | None, object, Mapping[str, Any]]  # place, seed, item, numbers
COMPARED = {"ev_reassigned": "EV − reassigned ratios", "ev_reassigned_deciles": "EV − reassigned within deciles of |x|"}


class WithGrids(Report):
    """What table and figure share: EV's grid in each direction."""

    recorded = ("grids",)

    @functools.cached_property
    def grids(self) -> dict[str, list[float]]:
        directions = dict.fromkeys(cell.direction for cell in self.cells)
        return {name: method_settings(self.experiment, METHOD, name)["ratios"] for name in directions}


class Checks(OfStudy, WithGrids, TableReport):
    """Is it the source that chooses EV's canvas? Its sweep, its ratios, its controls."""

    texts = True
    reads = (diagnostics_file,)
    caption = (
        "The dense sweep's lowest entropy and its ends, the ratios that EV takes, EV's other scores, and EV's lead "
        "over canvases whose ratios were given to other sentences."
    )

    def problems(self) -> Iterator[str]:
        yield from self.of_one_backbone()
        yield from self.of_one_setting()
        yield from self.of_methods(METHOD)

    def numbers(self, results: Results) -> pd.DataFrame:
        """Columns: those of PLACE, ``seed`` (none: over seeds), ``check``, ``item``, ``metric``, ``value``.

        Checks: ``sweep`` (items first, lowest, last; metrics ratio and entropy), ``chosen`` (item: the place of a
        nominal ratio in EV's grid, from 1; metrics ratio, share and count, the mean over seeds), ``score`` (item: a
        method; mean, std) and ``test`` (item: what EV is compared with; the fields of :class:`PairedTest`, run by run).
        """
        checks = {"sweep": self._sweep, "chosen": self._chosen, "score": self._scores, "test": self._tests}
        rows = [
            (*place, seed, check, str(item), *number)
            for check, measured in checks.items()
            for place, seed, item, values in measured(results)
            for number in values.items()
        ]
        return pd.DataFrame(rows, columns=[*PLACE, "seed", "check", "item", "metric", "value"])

    @property
    def ev(self) -> list[Cell]:
        """Its cells of EV."""
        return [cell for cell in self.cells if cell.method == METHOD]

    def _sweep(self, results: Results) -> Iterator[Measured]:
        points = over_runs(curves(results, self.ev))
        for place, line in points[points["axis"] == "ratios"].groupby(list(PLACE), sort=False):
            line = line.sort_values("at")
            named = {"first": line.iloc[0], "lowest": line.loc[line["mean"].idxmin()], "last": line.iloc[-1]}
            for item, point in named.items():
                values = {"ratio": point["at"], "entropy": point["mean"], "sentences": point["sentences"]}
                yield place, None, item, values

    def _chosen(self, results: Results) -> Iterator[Measured]:
        for place in dict.fromkeys((cell.direction, cell.testset) for cell in self.ev):
            grid = sorted(self.grids[place[0]])
            cells = [cell for cell in self.ev if (cell.direction, cell.testset) == place]
            counts = [nominal_ratios(results, cell, grid) for cell in cells]
            for number, ratio in enumerate(grid, 1):
                count = sum(run[ratio] for run in counts) / len(counts)
                share = sum(run[ratio] / run.total() for run in counts) / len(counts)
                yield place, None, number, {"ratio": ratio, "count": count, "share": share}

    def _scores(self, results: Results) -> Iterator[Measured]:
        cells = [cell for cell in self.cells if cell.method in (METHOD, *ALTERNATIVES)]
        for row in summarise(results, cells, [self.metric]).itertuples(index=False):
            yield (row.direction, row.testset), None, row.method, {"mean": row.mean, "std": row.std, "runs": row.runs}

    def _tests(self, results: Results) -> Iterator[Measured]:
        for key, cells in by_run(self.cells, (*PLACE, "seed")).items():
            for name, methods in groups(list(cells)).items():
                others = [cells[method] for method in methods]
                test = compare_means(results, [cells[METHOD]], others, self.metric, self.statistics)
                values = asdict(test) | {"bootstrap_seed": self.statistics.seed, "systems": len(others)}
                yield key[:2], key[2], name, values

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        """A column for each direction; a check that was not run has no rows."""
        numbers = placed(numbers)
        places = list(dict.fromkeys(numbers["place"]))
        order = {name: rank for rank, name in enumerate(ordered(numbers.loc[numbers["check"] == "score", "item"]))}
        lines: dict[str, dict[str, dict[tuple[str, str], str]]] = {}
        for check in ("sweep", "chosen", "score", "test"):
            rows = numbers[numbers["check"] == check]
            if check == "score":
                rows = rows.sort_values("item", key=lambda items: items.map(order), kind="stable")
            for (item, seed, place), of_line in rows.groupby(["item", "seed", "place"], sort=False, dropna=False):
                values = dict(zip(of_line["metric"], of_line["value"], strict=True))
                part, label, text = self._line(check, item, seed, values)
                lines.setdefault(part, {}).setdefault(label, {})[place] = text
        groups = []
        for part, of_part in lines.items():
            texts = ((label, *(line.get(place, formats.NONE) for place in places)) for label, line in of_part.items())
            groups.append(Group(part, list(map(TableRow.of, texts))))
        heads = (Column("Check", align="l"), Column("", align="l"), *(Column(self.place(*place)) for place in places))
        return Table(heads, [TableSection(groups)], _notes(self, numbers[numbers["check"] == "test"]))

    def _line(self, check: str, item: str, seed: float, values: Numbers) -> tuple[str, str, str]:
        """The check, the label of a row, and its text in one place."""
        match check:
            case "sweep":
                return "Mean all-mask entropy by ratio", item, f"{values['ratio']:.2f}: {values['entropy']:.4f}"
            case "chosen":
                share = f"{values['ratio']:.2f}: {values['share']:.1%} ({values['count']:.0f})"
                return "Ratios that EV takes", item, share
            case "score":
                score = formats.mean_std(values["mean"], values["std"], self.metric.decimals)
                return self.metric.label, self.method(item).label, score
        p = formats.p_statement(values["p_two_sided"], int(values["resamples"]))
        compared = COMPARED.get(item) or f"EV − {self.method(item).label}"
        return compared, f"seed {seed:.0f}", f"{formats.lead(values, self.metric)}, {p}"


class SelectorChecksFigure(WithGrids, FigureReport):
    """The main backbone's mean all-mask entropy against the canvas ratio, a panel for each direction and test set."""

    caption = (
        "Mean all-mask entropy of the main backbone against the ratio of canvas to source tokens, with a band as in "
        "the figure entropy_valley. Ticks: EV's candidates; the vertical line: Fixed Ratio's ratio."
    )

    width, scored = 2.1, False
    reads = (diagnostics_file,)

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return [cell for cell in valley_cells(self.experiment) if cell.backbone == self.experiment.tables.backbone]

    def numbers(self, results: Results) -> pd.DataFrame:
        points = over_runs(curves(results, self.cells))
        return points[points["axis"] == "ratios"].drop(columns="lowest", errors="ignore")

    def panels(self, numbers: pd.DataFrame) -> Sequence[Panel]:
        lines = numbers.groupby([*PLACE], sort=False)
        return [functools.partial(_sweep_panel, self, line, not number) for number, (_, line) in enumerate(lines)]


# --- The numbers.


def groups(methods: Sequence[str]) -> dict[str, list[str]]:
    """What EV is compared with, by name: the permutations of a reassignment together, an alternative by itself."""
    named: dict[str, list[str]] = {}
    for name in methods:
        match = PERMUTATION.fullmatch(name)
        if match or name in ALTERNATIVES:
            named.setdefault(match[1] if match else name, []).append(name)
    order = ("ev_reassigned", "ev_reassigned_deciles", *ALTERNATIVES)
    return {name: named[name] for name in order if name in named}


def nominal_ratios(results: Results, cell: Cell, grid: Sequence[float]) -> Counter[float]:
    """How many sentences of an EV cell have the canvas of each ratio of an ascending grid; the first that gives it.

    Raises :class:`InputError` for a canvas that is none of the grid's.
    """
    tokens = results.diagnostics(cell, "valley")["source_tokens"]
    counts: Counter[float] = Counter()
    for row in results.canvases(cell, "length"):
        # Exact products first: one in binary floating point may be a slot less, and no smaller ratio then gives that.
        count = tokens.get(row["id"], 0)
        products = {ratio: {candidate_length(ratio, count, exact=exact) for exact in (True, False)} for ratio in grid}
        fitting = [ratio for ratio, lengths in products.items() if row["length"] in lengths]
        if not fitting:
            problem = f"sentence {row['id']!r}: {row['length']} slots are not a canvas of EV's grid"
            raise InputError(results.place(cell, TRANSLATIONS), problem, REMEDY)
        counts[fitting[0]] += 1
    return counts


# --- The layout.


def _notes(report: Checks, tests: pd.DataFrame) -> tuple[str, ...]:
    """The setting, and how to read each check."""
    counts = tests.loc[(tests["metric"] == "systems") & tests["item"].isin(COMPARED), "value"].unique()
    permutations = " or ".join(f"{count:.0f}" for count in counts)
    reassigned = (
        "Reassigned: each sentence gets the ratio L/|x| that EV took for another; its score is the mean over "
        f"{permutations} permutations, each decoded."
    )
    return (
        notes.setting(report),
        (
            "Entropy by ratio: the ratio, then the entropy in nats, mean over sentences and runs; at both ends of "
            "the sweep and where it is lowest."
        ),
        (
            "Ratios that EV takes: the ratio, then the share of sentences (their number, mean over runs). Of ratios "
            "with the same canvas, the smallest counts."
        ),
        *([reassigned] if len(counts) else []),
        "Differences: mean over sentences [95 % bootstrap interval], two-sided p, run by run.",
    )


def _sweep_panel(report: SelectorChecksFigure, line: pd.DataFrame, first: bool, axes: Axes) -> None:
    direction, testset = line["direction"].iloc[0], line["testset"].iloc[0]
    label = report.backbone(line["backbone"].iloc[0])
    draw_line(axes, line, BACKBONE_COLOURS[0], ".", label)
    ratio = method_settings(report.experiment, "ratio", direction)["ratios"]
    axes.axvline(ratio, label=report.method("ratio").short, color=METHOD_COLOURS["ratio"], zorder=1)
    _draw_grid(axes, report.grids[direction])
    _lowest(axes, line.loc[line["mean"].idxmin()])
    axes.set_title(report.place(direction, testset))
    axes.set_xlabel("ratio r of the canvas")
    axes.margins(y=0.25)
    if first:
        axes.set_ylabel("mean all-mask entropy (nats)")
        legend_above(axes)


def _draw_grid(axes: Axes, ratios: list[float]) -> None:
    """EV's candidates as ticks on the axis."""
    axes.plot(
        ratios, [0.0] * len(ratios), "|", transform=axes.get_xaxis_transform(), color=METHOD_COLOURS["ev"],
        markersize=12, label="EV's grid",
    )  # fmt: skip


def _lowest(axes: Axes, point: pd.Series) -> None:
    text = formats.minus(f"{point['mean']:.2f} at {point['at']:.2f}")
    left, right = axes.get_xlim()
    place = (point["at"] - left) / (right - left)
    side = "left" if place < 0.2 else "right" if place > 0.8 else "center"  # within the axes
    below = (point["at"], point["low"])
    axes.annotate(text, below, (0, -3), textcoords="offset points", ha=side, va="top", bbox=ON_WHITE)
