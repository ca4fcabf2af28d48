"""Regular tables: a frame of numbers, pivoted into sections, groups, rows and columns.

A regular table is a class that says by which keys its sections, groups and rows go, and gives a list of columns, each
with its cell in a row. What is here does the rest. The keys are columns of the frame, and ``place``, a direction with a
test set. The regular tables are in :mod:`regular`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.summary import BASELINES
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.formats import closure_title, ordered
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Table, TableCell, TableRow, TableSection

At = dict[str, Any]  # where a row is: its keys with their values


@dataclass(frozen=True)
class Entry:
    """A column of a regular table, and what it says in each row."""

    column: Column
    cell: Callable[[At], TableCell]


def placed(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with a column ``place``."""
    return frame.assign(place=list(zip(frame["direction"], frame["testset"], strict=True)))


def parts(frame: pd.DataFrame, keys: Sequence[str], at: At) -> Iterator[tuple[At, pd.DataFrame]]:
    """The part of a frame for each combination of keys that it has, in its order; methods in the paper's."""
    if not keys:
        yield at, frame
        return
    key, *others = keys
    for value in ordered(frame[key]) if key == "method" else dict.fromkeys(frame[key]):
        yield from parts(frame[[one == value for one in frame[key]]], others, {**at, key: value})


def by_key(tidy: pd.DataFrame, *keys: str, name: str = "metric") -> dict[tuple[Any, ...], dict[str, float]]:
    """The values of a tidy frame by their ``name``, for each combination of keys that it has, in its order."""
    values: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in tidy.to_dict("records"):
        values.setdefault(tuple(row[key] for key in keys), {})[row[name]] = row["value"]
    return values


def pivot(
    frame: pd.DataFrame,
    keys: tuple[Sequence[str], str, Sequence[str]],
    texts: Callable[[At, pd.DataFrame], Iterable[str | TableCell]],
    label: Callable[[str, At], TableCell],
    shaded: Callable[[At], bool] = lambda at: False,
) -> list[TableSection]:
    """The sections of a table. ``keys`` are those of sections, the one of groups, and those of rows.

    A row begins with the ``label`` of each of its keys; one that a row shares with the row above is left out. Then come
    the ``texts`` of its keys and of its part of the frame.
    """
    by_section, by_group, by_row = keys
    sections = []
    for section, of_section in parts(frame, by_section, {}):
        groups = []
        for group, of_group in parts(of_section, [by_group], section):
            rows: list[TableRow] = []
            above: At = {}
            for at, part in parts(of_group, by_row, group):
                shared = [key for key in by_row[:-1] if above.get(key) == at[key]]
                heads = [TableCell("") if key in shared else label(key, at) for key in by_row]
                rows.append(TableRow.of((*heads, *texts(at, part)), shaded(at)))
                above = at
            groups.append(Group(label(by_group, group).text, rows))
        sections.append(TableSection(groups, ", ".join(label(key, section).text for key in by_section)))
    return sections


KEYS = ("backbone", "place", "order", "steps", "metric", "method")


class Summary:
    """The summary of :func:`stats.closure.summarise`, looked up number by number.

    A place in it is given by the keys in which its rows differ, and may have others. ``informed`` are the methods that
    see the reference.
    """

    def __init__(self, frame: pd.DataFrame, informed: Collection[str] = ()) -> None:
        self.frame, self._informed = placed(frame), informed
        self._only = {key: values[0] for key in KEYS if len(values := self.values(key)) == 1}
        self._rows = {tuple(getattr(row, key) for key in KEYS): row for row in self.frame.itertuples(index=False)}
        self.methods = ordered(self.frame["method"])
        self.baselines = [name for name in BASELINES if name in self.methods]
        self._deployable: dict[tuple[Any, ...], list[float]] = {}
        for (*place, name), row in self._rows.items():
            if name not in informed:
                self._deployable.setdefault(tuple(place), []).append(row.mean)

    def values(self, key: str) -> list[Any]:
        """The distinct values of a key, in the frame's order."""
        return list(dict.fromkeys(self.frame[key]))

    @property
    def mean_title(self) -> str:
        """The title of a column of means over runs."""
        return "Mean ± Std" if self.frame["runs"].max() > 1 else "One run"

    def row(self, metric: Metric, at: At, **other: Any) -> Any:
        """The summary's row at a place, fields as in ``summarise``; :class:`InputError` if it has none."""
        return self._at(metric, at | other)[1]

    def _at(self, metric: Metric, at: At) -> tuple[tuple[Any, ...], Any]:
        full = {**self._only, **at, "metric": metric.name}
        key = tuple(full[name] for name in KEYS)
        if key not in self._rows:
            (direction, testset), name = full["place"], full["method"]
            place = f"{full['backbone']}/{direction}/{testset}"
            raise InputError(place, f"no {metric.name} of method {name}", f"Add {name} to the matrix's methods.")
        return key, self._rows[key]

    def is_best(self, metric: Metric, at: At) -> bool:
        """Whether a method has the best mean of those that see no reference."""
        (*place, name), row = self._at(metric, at)
        means = self._deployable.get(tuple(place), [])
        return name not in self._informed and row.mean == best(metric)(means)

    def score(self, metric: Metric, at: At, shaded: bool = False, **other: Any) -> TableCell:
        """Mean ± std, bold for the best."""
        at = at | other
        row = self.row(metric, at)
        text = formats.mean_std(row.mean, row.std, metric.decimals)
        return TableCell(text, self.is_best(metric, at), shaded)

    def closure(self, metric: Metric, at: At, baseline: str = "ratio", shaded: bool = False, **other: Any) -> TableCell:
        """Gap closure, bold for the best; Oracle's and the baseline's hold by definition where any run has a gap.

        Fixed Ratio has none over the ratio with an EOS slot: how far it is below that one is not a share of a gap.
        """
        at = at | other
        row, prefix = self.row(metric, at), BASELINES[baseline]
        mean, std, runs = (getattr(row, f"{prefix}_{value}") for value in ("mean", "std", "runs"))
        if runs and row.method in ("oracle", baseline):
            return TableCell("100%" if row.method == "oracle" else "0%", shaded=shaded)
        if row.method in BASELINES and baseline == "ratio_eos":
            return TableCell(formats.NONE, shaded=shaded)
        text = formats.closure(mean, std, runs, row.runs)
        return TableCell(text, runs > 0 and self.is_best(metric, at), shaded)


def best(metric: Metric) -> Callable[..., float]:
    """Which of several scores is the best one."""
    return max if metric.higher_is_better else min


class Regular(TableReport):
    """A table whose rows and columns are places of a summary: it says which, and what stands in each column."""

    keys: ClassVar[tuple[Sequence[str], str, Sequence[str]]] = ((), "place", ("method",))
    titles: ClassVar[Mapping[str, Column]] = {
        "backbone": Column("Backbone", align="l"),
        "place": Column("Direction", align="l"),
        "method": Column("Method", align="l"),
        "steps": Column("T", align="r"),
    }

    def summary(self, numbers: pd.DataFrame) -> Summary:
        return Summary(numbers, self.informed)

    def entries(self, summary: Summary) -> list[Entry]:
        """The columns behind those of the keys; unless said otherwise, scores and gap closures in each metric."""
        entries = []
        for metric in self.shown_metrics:
            scores = Entry(Column(summary.mean_title, metric.label), functools.partial(summary.score, metric))
            entries += [scores, *self.closures(summary, metric, metric.label)]
        return entries

    def scores(
        self, summary: Summary, metric: Metric, names: Iterable[str], over: str = "", align: str = "c", shaded: str = ""
    ) -> Iterator[Entry]:
        """A column for the means of each of some methods."""
        for name in names:
            score = functools.partial(summary.score, metric, method=name, shaded=name == shaded)
            yield Entry(Column(self.method(name).short, over, align), score)

    def closures(self, summary: Summary, metric: Metric, over: str = "", **at: Any) -> Iterator[Entry]:
        """A column for the gap closures over each baseline; ``at`` as of :meth:`Summary.closure`."""
        for name in summary.baselines:
            closure = functools.partial(summary.closure, metric, baseline=name, **at)
            yield Entry(Column(closure_title(name), over), closure)

    def label(self, key: str, at: At) -> TableCell:
        """What a row, a group or a section says of one of its keys."""
        match key:
            case "place":
                return TableCell(self.place(*at["place"]))
            case "backbone":
                return TableCell(self.backbone(at["backbone"]))
            case "method":
                return TableCell(self.method_in(at["method"], at["place"][0]), bold=at["method"] == "ev")
            case "order":
                return TableCell(self.order(at["order"]))
            case "metric":
                (metric,) = self.named_metrics(at["metric"])
                return TableCell(metric.label)
        return TableCell(str(at[key]))

    def notes(self, results: Results, numbers: pd.DataFrame, summary: Summary) -> Sequence[str]:
        """Whose numbers these are, and how to read them."""
        return (notes.setting(self), *notes.reading(self, results, numbers))

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        summary, (by_section, by_group, by_row) = self.summary(numbers), self.keys
        entries, frame = self.entries(summary), summary.frame
        if "metric" in by_section:
            frame = frame[frame["metric"].isin([metric.name for metric in self.shown_metrics])]
        columns = (*(self.titles[key] for key in (by_group, *by_row)), *(entry.column for entry in entries))
        sections = pivot(
            frame, self.keys, lambda at, _: [entry.cell(at) for entry in entries], self.label,
            shaded=lambda at: at.get("method") == "ev",
        )  # fmt: skip
        return Table(columns, sections, self.notes(results, numbers, summary))
