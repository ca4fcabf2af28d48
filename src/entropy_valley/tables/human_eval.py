"""The tables and the figure of the human evaluation."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from entropy_valley import files
from entropy_valley.config import matrix, params
from entropy_valley.config.schema import HumanEvaluation
from entropy_valley.human_evaluation import statistics
from entropy_valley.human_evaluation.pack import BUCKETS
from entropy_valley.human_evaluation.settings import POOLED
from entropy_valley.human_evaluation.statistics import PREFERENCES, SCALES
from entropy_valley.results import record_path
from entropy_valley.tables import formats
from entropy_valley.tables.base import FigureReport, Report, TableReport
from entropy_valley.tables.pivot import by_key
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Table, TableSection
from entropy_valley.tables.style import INK, METHOD_COLOURS, SERIES_COLOURS, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- What annotators say of two systems: a table, and a table of details.

Values = Mapping[str, float]  # statistics by their names
SIMULATED = "The annotators are simulated, by rules: these numbers say nothing of people's judgements."
PREFERRED = "Preference: sentences on which the first system, the second one, or neither is preferred."
MAJORITY = (
    "Preference of all: what more than half of the annotators of a sentence chose; without such a majority, as in a "
    "three-way split, it is a tie."
)
TESTS = (
    "Two-sided p: Wilcoxon's signed-rank test; of all annotators on their mean for each sentence. Sign test: "
    "majorities without ties. *, **, ***: p below 0.05, 0.01, 0.001, not corrected for the number of tests. N needed: "
    "sentences for 80 % power at 5 %, were the observed difference the true one."
)
AGREEMENT = (
    "On the sentences that all annotators rated. Kendall's W, with ties, of the ranks of sentences: lowest and highest "
    "of the four scores. Krippendorff's α: ordinal of scores, nominal of preferences. ρ is Spearman's; of both: of "
    "adequacy and of fluency."
)


class OfRatings(Report):
    """What tables and figure share: both systems of each direction, and its ratings."""

    @functools.cached_property
    def cells(self) -> list[matrix.Cell]:
        return [cell for name in self.directions for cell in matrix.evaluated_cells(self.experiment, name)]

    @property
    def directions(self) -> list[str]:
        return matrix.evaluated_directions(self.experiment)

    @property
    def ready(self) -> bool:
        """Whether each direction has filled forms: without them, only who asks for it is told what to do."""
        return all(params.filled_forms(self.experiment, name) for name in self.directions)

    @property
    def comparable(self) -> bool:
        """The paper's are EV and Fixed Ratio of the main backbone."""
        of_paper = [cell.method for cell in self.cells] == ["ev", "ratio"] * len(self.directions)
        return self.ready and not self.people.simulated and of_paper and {*self.cells} <= {*self.main_cells}

    @property
    def people(self) -> HumanEvaluation:
        """Who rates what, as the config says it."""
        return self.experiment.human_evaluation

    def inputs(self) -> list[str]:
        """Also the ratings, and the records of the packs and of simulated forms."""
        read = []
        for name in self.directions:
            forms = params.filled_forms(self.experiment, name) if self.people.simulated else []
            made = [f"{params.pack_folder(self.experiment, name)}/pack.json", *forms]
            read += [f"{self.experiment.results}/{_file(name)}", *(str(record_path(path)) for path in made)]
        return [*super().inputs(), *read]

    def ratings(self, results: Results, direction: str) -> pd.DataFrame:
        """The ratings of a direction, see :func:`statistics.frame`."""
        rows = files.read_jsonl(results.at(_file(direction)), ("annotator", "id", "preference"))
        return statistics.frame(rows)

    def numbers(self, results: Results) -> pd.DataFrame:
        """A row for each direction, annotator (``all``: together), bucket and statistic."""
        rows = (self._statistics(name, self.ratings(results, name)) for name in self.directions)
        return pd.DataFrame([row for of_direction in rows for row in of_direction])

    def systems(self, direction: str) -> list[str]:
        """The two systems of a direction as tables print them, the first one first, with what else they differ in."""
        parts = (
            lambda cell: self.backbone(cell.backbone),
            lambda cell: self.order(cell.order),
            lambda cell: f"T = {cell.steps}",
            lambda cell: f"seed {cell.seed}",
        )
        pair = self.pair(direction)
        apart = [part for part in parts if len(set(map(part, pair))) > 1]
        return [", ".join([self.method(cell.method).short, *(part(cell) for part in apart)]) for cell in pair]

    def pair(self, direction: str) -> list[matrix.Cell]:
        """The cells of these systems."""
        return [cell for cell in self.cells if cell.direction == direction]

    def _statistics(self, direction: str, rows: pd.DataFrame) -> list[dict[str, Any]]:
        groups = [
            (name, "", statistics.of_annotator(given, self.statistics))
            for name, given in rows.groupby("annotator", sort=False)
        ]
        groups.append((POOLED, "", statistics.of_all(rows, self.statistics) | statistics.agreement(rows)))
        for bucket in BUCKETS:
            means = rows[rows["bucket"] == bucket].groupby("id")[[*SCALES, "difference"]].mean()
            groups.append((POOLED, bucket, {"sentences": len(means), **statistics.correlations(means)}))
        return [
            {"direction": direction, "annotator": name, "bucket": bucket, "statistic": statistic, "value": value}
            for name, bucket, values in groups
            for statistic, value in values.items()
        ]

    @property
    def packed(self) -> int:
        """The sentences of a pack."""
        return sum(self.people.sentences.model_dump().values())

    def sentences(self, results: Results) -> str:
        """Those of a pack, which are some of a test set's."""
        return f"N = {self.packed} sentences."

    def rated(self, values: Mapping[Any, Values]) -> list[str]:
        """How many sentences each annotator rated, where not all; and whether they are people."""
        notes = [SIMULATED] if self.people.simulated else []
        annotators, sentences = self.people.annotators, self.packed
        for direction in self.directions:
            given = {name: values.get((direction, name, ""), {}) for name in annotators}
            counts = {name: int(of_one.get("sentences", 0)) for name, of_one in given.items()}
            if set(counts.values()) != {sentences}:
                listed = ", ".join(f"{name} {count}" for name, count in counts.items())
                place = formats.direction(direction)
                notes.append(f"Partial: of the {sentences} sentences of {place} were rated by {listed}.")
        return notes


def _file(direction: str) -> str:
    """The ratings of a direction, below the folder of results."""
    return f"human_evaluation/{direction}/ratings.jsonl"


class HumanEval(OfRatings, TableReport):
    """Mean differences and majority preferences, a row for each direction."""

    caption = "Adequacy and fluency by human annotators, 1 to 5: first system minus second, and which one they prefer."

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        values = by_key(numbers, "direction", "annotator", "bucket", name="statistic")
        columns = (
            Column("Direction", align="l"),
            Column("Systems"),
            *(Column(f"Δ {scale.capitalize()}") for scale in SCALES),
            Column("Preference"),
            Column("N", align="r"),
        )
        groups = []
        for name in self.directions:
            of_all = values[name, POOLED, ""]
            shown = [_difference(of_all, scale) for scale in SCALES]
            texts = (" − ".join(self.systems(name)), *shown, _preferences(of_all), f"{of_all['sentences']:.0f}")
            groups.append(Group.of(formats.direction(name), texts))
        return Table(columns, [TableSection(groups)], (PREFERRED, MAJORITY, *self.rated(values)))


class HumanEvalDetails(OfRatings, TableReport):
    """Each annotator, all together, their agreement, and the metric beside them."""

    caption = (
        "The human evaluation annotator by annotator: differences, preferences and tests; agreement of annotators, "
        "and Spearman's correlation of the differences in {metric} and in their scores, also by bucket."
    )

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        values = by_key(numbers, "direction", "annotator", "bucket", name="statistic")
        columns = (Column("", align="l"), *map(Column, self.people.annotators), Column("All"))
        sections = [
            TableSection(list(self._rows(values, name)), f"{formats.direction(name)}, {' − '.join(self.systems(name))}")
            for name in self.directions
        ]
        return Table(columns, sections, (PREFERRED, MAJORITY, TESTS, AGREEMENT, *self.rated(values)))

    def _rows(self, values: Mapping[Any, Values], direction: str) -> Iterator[Group]:
        """The rows of a direction: what each annotator and all have, then what only all together have."""
        people = [values.get((direction, name, "")) for name in self.people.annotators]
        every = values[direction, POOLED, ""]
        number, label = formats.number, self.metric.label

        def of_each(label: str, text: Callable[[Values], str]) -> Group:
            return Group.of(label, [text(one) if one else formats.NONE for one in (*people, every)])

        def of_all(label: str, text: str) -> Group:
            return Group.of(label, [*[formats.NONE] * len(people), text])

        for scale in SCALES:
            yield of_each(f"Δ {scale.capitalize()}", functools.partial(_difference, scale=scale))
            yield of_each("   Wilcoxon's p", functools.partial(_wilcoxon, scale=scale))
        yield of_each("Preference", _preferences)
        for scale in SCALES:
            interval = formats.interval(every[scale], every[f"{scale}_low"], every[f"{scale}_high"], 2)
            yield of_all(f"Δ {scale.capitalize()}, 95 % CI", interval)
        yield of_all("Sign test of majorities, p", formats.stars(every["sign_p"]))
        for scale in SCALES:
            needed = every[f"{scale}_needed"]
            yield of_all(f"N needed, {scale}", "∞" if math.isinf(needed) else number(needed, 0))
        yield of_all("Fleiss' κ of preferences", number(every["kappa"], 3))
        yield of_all("Kendall's W", f"{number(every['w_low'], 2)} to {number(every['w_high'], 2)}")
        for name in (*SCALES, "preference"):
            yield of_all(f"Krippendorff's α, {name}", number(every[f"{name}_alpha"], 3))
        for scale in SCALES:
            rho, p = every[f"{scale}_rho"], every[f"{scale}_rho_p"]
            text = f"{formats.signed(rho, 3)} (p = {formats.small_p(p)})"
            yield of_all(f"ρ of Δ{label} and Δ{scale}", formats.NOT_AVAILABLE if math.isnan(rho) else text)
        first, second = self.systems(direction)
        buckets = {"first_best": f"{first} best", "second_best": f"{second} best", "tied": "tied", "random": "random"}
        for bucket in BUCKETS:
            rhos = (formats.signed(values[direction, POOLED, bucket][f"{scale}_rho"], 2) for scale in SCALES)
            yield of_all(f"ρ of both, {buckets[bucket]}", " / ".join(rhos))


def _difference(values: Values, scale: str) -> str:
    return formats.signed(values[scale], 2)


def _wilcoxon(values: Values, scale: str) -> str:
    return formats.stars(values[f"{scale}_p"])


def _preferences(values: Values) -> str:
    return " / ".join(f"{values[name]:.0f}" for name in PREFERENCES)


# --- What annotators say of two systems, as a figure.


class HumanEvalFigure(OfRatings, FigureReport):
    """A row for each direction: adequacy by annotator and system; the metric's difference beside that of adequacy."""

    caption = (
        "Human evaluation, a row for each direction; the paper draws En→Zh. Left: adequacy by annotator, both systems; "
        "boxes are quartiles, diamonds means. Right: a point for each sentence, difference in {metric} and mean "
        "difference in adequacy, with Spearman's correlation."
    )
    width, height = 3.15, 2.5

    def numbers(self, results: Results) -> pd.DataFrame:
        """The ratings that are drawn."""
        read = [self.ratings(results, name).assign(direction=name) for name in self.directions]
        columns = ["direction", "annotator", "id", "bucket", "difference"]
        return pd.concat(read, ignore_index=True)[[*columns, "first_adequacy", "second_adequacy", "adequacy"]]

    def panels(self, numbers: pd.DataFrame) -> Sequence[Panel]:
        drawn = []
        for name in self.directions:
            rows = numbers[numbers["direction"] == name]
            drawn += [functools.partial(one, name, rows) for one in (self._boxes, self._scatter)]
        return drawn

    def _boxes(self, direction: str, rows: pd.DataFrame, axes: Axes) -> None:
        colours = [METHOD_COLOURS.get(cell.method, SERIES_COLOURS[at]) for at, cell in enumerate(self.pair(direction))]
        names = [name for name in self.people.annotators if name in set(rows["annotator"])]
        systems = zip(("first", "second"), self.systems(direction), colours, strict=True)
        for number, (system, label, colour) in enumerate(systems):
            given = [rows.loc[rows["annotator"] == name, f"{system}_adequacy"] for name in names]
            places = np.arange(len(names)) + (number - 0.5) * 0.36
            boxes = axes.boxplot(
                given, positions=places, widths=0.3, patch_artist=True, showmeans=True, manage_ticks=False,
                medianprops={"color": INK}, flierprops={"markersize": 2},
                meanprops={"marker": "D", "markersize": 3, "markerfacecolor": "white", "markeredgecolor": INK},
            )  # fmt: skip
            for box in boxes["boxes"]:
                box.set_facecolor(colour)
            axes.plot([], [], color=colour, linewidth=6, label=label)
        axes.set_xticks(np.arange(len(names)), names)
        axes.set_yticks(range(1, 6))
        axes.set_ylabel("adequacy")
        axes.set_title(formats.direction(direction) + (" (simulated)" if self.people.simulated else ""))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)

    def _scatter(self, direction: str, rows: pd.DataFrame, axes: Axes) -> None:
        means = rows.groupby("id")[["adequacy", "difference"]].mean()
        correlations = statistics.correlations(means.assign(fluency=means["adequacy"]))
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.scatter(means["difference"], means["adequacy"], s=12, color=SERIES_COLOURS[3], alpha=0.6, linewidth=0)
        axes.set_xlabel(f"Δ {self.metric.label} ({' − '.join(self.systems(direction))})")
        axes.set_ylabel("mean Δ adequacy")
        rho, p = correlations["adequacy_rho"], correlations["adequacy_rho_p"]
        of_p = "" if math.isnan(p) else " (p < 0.001)" if p < 0.001 else f" (p = {formats.small_p(p)})"
        axes.set_title(f"Spearman's ρ = {formats.number(rho, 3)}{of_p}")
