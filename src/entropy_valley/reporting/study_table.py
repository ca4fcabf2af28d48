"""The table of a study: a section for each backbone and direction, a row for each system, the columns it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from entropy_valley.analysis.study import PLACE, SYSTEM, StudySpec
from entropy_valley.reporting import formats
from entropy_valley.reporting.methods import method
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

NOTES = {
    "mae": "MAE: mean |canvas length − reference canvas|, in slots.",
    "closure": "Gap closure: (method − Ratio) / (Oracle − Ratio) in COMET, run by run.",
    "cost": "Cost: calls over Fixed Ratio's.",
    "calls": "Calls: forward passes a sentence as the paper counts them.",
    "slots": "Slots: canvas slots in these calls, a sentence.",
    "passes": "Passes: those really needed, a sentence.",
    "untouched": "Untouched: sentences whose canvas is no longer than T, which a larger T cannot change.",
    "latency": "Latency: measured seconds a sentence, one at a time; the method alone, without the store.",
    "latency_batched": "Batched: the same with all sentences of the benchmark together.",
}


@dataclass(frozen=True)
class System:
    """A row: what it is, its mean and deviation over runs, and its runs one by one."""

    spec: StudySpec
    key: Mapping[str, Any]
    mean: Mapping[str, Any]
    std: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]

    @property
    def is_tested(self) -> bool:
        """Whether it is the system whose lead over the others is shown."""
        return tuple(self.key[name] for name in SYSTEM) == tuple(self.spec.against)

    def number(self, name: str, decimals: int) -> str:
        """Mean ± deviation; of a single run its value alone."""
        if len(self.runs) > 1:
            return formats.mean_std(self.mean[name], self.std[name], decimals)
        value = self.mean[name]
        return formats.NOT_AVAILABLE if pd.isna(value) else formats.minus(f"{value:.{decimals}f}")

    def lead(self) -> str:
        """The lead with its interval and p; of several runs the mean, and whether the intervals leave zero out."""
        if self.is_tested or pd.isna(self.mean["lead"]):
            return formats.NONE
        if len(self.runs) == 1:
            (run,) = self.runs
            interval = formats.interval(run["lead"], run["ci_low"], run["ci_high"], 4)
            return f"{interval}, {formats.p_statement(run['p_two_sided'], self.spec.resamples)}"
        above, below = sum(run["ci_low"] > 0 for run in self.runs), sum(run["ci_high"] < 0 for run in self.runs)
        return f"{formats.signed(self.mean['lead'], 4)} ({above} above, {below} below 0 of {len(self.runs)} runs)"

    def cost(self) -> str:
        text = self.number("cost", 2)
        return text if text == formats.NOT_AVAILABLE else f"{text}×"

    def closure(self) -> str:
        counted = sum(not pd.isna(run["closure"]) for run in self.runs)
        return formats.closure(self.mean["closure"], self.std["closure"], counted, len(self.runs))

    def grid(self) -> list[float]:
        """The candidate ratios, ascending; one for Fixed Ratio, none where the method has no grid."""
        ratios = self.spec.grids.get(self.key["direction"], {}).get(self.key["method"])
        return sorted(ratios) if isinstance(ratios, Sequence) else [] if ratios is None else [ratios]

    def ratios(self) -> str:
        grid = self.grid()
        return formats.NONE if not grid else "–".join(dict.fromkeys(f"{ratio:g}" for ratio in (grid[0], grid[-1])))


Cells = Callable[[System], str]


def columns_of(spec: StudySpec) -> dict[str, tuple[Column, Cells]]:
    """Title and text of every column that a study may ask for."""
    rival = method(spec.against[0]).short
    return {
        "order": (Column("Order"), lambda system: system.key["order"]),
        "steps": (Column("T", align="r"), lambda system: str(system.key["steps"])),
        "candidates": (Column("K", align="r"), lambda system: str(len(system.grid()) or formats.NONE)),
        "ratios": (Column("Ratios"), System.ratios),
        "mae": (Column("MAE", align="r"), lambda system: system.number("mae", 2)),
        "bleu": (Column("sacreBLEU", align="r"), lambda system: system.number("bleu", 2)),
        "comet": (Column(spec.metric_name), lambda system: system.number("comet", 4)),
        "closure": (Column("Gap closure", align="r"), System.closure),
        "lead": (Column(f"{rival} − system [95 % CI], p"), System.lead),
        "cost": (Column("Cost", align="r"), System.cost),
        "calls": (Column("Calls", align="r"), lambda system: system.number("calls", 2)),
        "slots": (Column("Slots", align="r"), lambda system: system.number("slots", 2)),
        "passes": (Column("Passes", align="r"), lambda system: system.number("passes", 2)),
        "untouched": (
            Column("Untouched", align="r"),
            lambda system: formats.percent(system.mean["untouched"], system.std["untouched"]),
        ),
        "latency": (Column("Latency (s)", align="r"), lambda system: system.number("latency", 4)),
        "latency_batched": (Column("Batched (s)", align="r"), lambda system: system.number("latency_batched", 4)),
    }


def study_table(spec: StudySpec, frame: pd.DataFrame, provenance: Sequence[Note] = ()) -> Table:
    """Lay out :func:`analysis.study.study`: bold is the best COMET and BLEU of the systems that could be deployed."""
    columns = {name: columns_of(spec)[name] for name in spec.columns}
    places: dict[tuple[Any, ...], list[System]] = {}
    for system in systems(spec, frame):
        places.setdefault(tuple(system.key[name] for name in PLACE), []).append(system)
    sections = tuple(
        Section(tuple(_group(system, rows, columns) for system in rows), _heading(spec, place, rows))
        for place, rows in places.items()
    )
    head = (Column("System", align="l"), *(column for column, _ in columns.values()))
    return Table(head, sections, (*_notes(spec), *provenance))


def systems(spec: StudySpec, frame: pd.DataFrame) -> list[System]:
    """The rows of the table, in the order of the cells."""
    found = []
    for key, group in frame.groupby([*PLACE, *SYSTEM], sort=False):
        parts = {name: part.to_dict("records") for name, part in group.groupby("statistic")}
        named = dict(zip((*PLACE, *SYSTEM), key, strict=True))
        found.append(System(spec, named, parts["mean"][0], parts["std"][0], parts["run"]))
    return found


def _group(system: System, rivals: Sequence[System], columns: Mapping[str, tuple[Column, Cells]]) -> Group:
    cells = (
        Cell(text(system), name in ("comet", "bleu") and _is_best(system, rivals, name))
        for name, (_, text) in columns.items()
    )
    return Group(_label(system), (Row(tuple(cells), shaded=system.is_tested),))


def _label(system: System) -> str:
    """The method; order and T where they are not the main ones and have no column, as for a method's own filling."""
    spec, key = system.spec, system.key
    named = method(key["method"]).label
    ratio = system.grid() if key["method"] == "ratio" else []
    label = spec.labels.get("methods", {}).get(key["method"]) or (f"{named} {ratio[0]:g}" if ratio else named)
    _, order, steps = spec.against
    unsaid = {"order": (order, key["order"]), "steps": (f"T = {steps}", f"T = {key['steps']}")}
    others = [own for name, (main, own) in unsaid.items() if name not in spec.columns and own != main]
    return ", ".join([label, *others])


def _is_best(system: System, rivals: Sequence[System], name: str) -> bool:
    deployable = [rival for rival in rivals if not method(rival.key["method"]).upper_bound]
    return system in deployable and system.mean[name] == max(rival.mean[name] for rival in deployable)


def _heading(spec: StudySpec, place: Sequence[str], rows: Sequence[System]) -> str:
    backbone, direction, testset = place
    sentences = f"N = {rows[0].mean['sentences']:.0f}"
    return ", ".join([spec.label("backbones", backbone), spec.place(direction, testset), sentences])


def _notes(spec: StudySpec) -> tuple[Note, ...]:
    _, order, steps = spec.against
    seeds = len({cell.seed for cell in spec.cells})
    first = f"Reveal order {order}, T = {steps}, unless a row says otherwise; {seeds} run{'s' if seeds > 1 else ''}"
    lines = [
        f"{first}{' (mean ± sample standard deviation)' if seeds > 1 else ''}. Bold: the best but for upper bounds.",
        *(NOTES[name] for name in spec.columns if name in NOTES),
    ]
    if "lead" in spec.columns:
        lines.append(
            "Leads: sentence by sentence, percentile bootstrap in each run, two-sided p; above, below: whole intervals."
        )
    return tuple(Note(line) for line in lines)
