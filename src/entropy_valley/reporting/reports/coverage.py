"""The tables of what EV keeps that Ratio drops: literal items of the source, and scores by the length ratio r."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from entropy_valley.analysis.coverage import (
    BUCKET,
    EV,
    PLACE,
    RETENTION,
    RIVALS,
    CoverageParams,
    bucket_names,
    coverage,
    papers_count,
)
from entropy_valley.analysis.coverage_items import ENTITIES, NUMBERS, PLACEHOLDERS, extractors
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.experiment.schema import metrics_of
from entropy_valley.late import pandas as pd
from entropy_valley.model.families import find_family
from entropy_valley.reporting import formats
from entropy_valley.reporting.labels import method
from entropy_valley.reporting.report import TableReport, testset_file, tokens_file
from entropy_valley.reporting.results import best
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

WMT22 = "wmt22"  # the test set of the paper, in config.yaml and in config/authors.yaml
LITERAL = Note(
    "Retention: share of the source's items that the output contains as they are; N sentences have one. Means over "
    "runs, sentence by sentence, then over sentences."
)
TESTS = Note(
    "Δ: EV − the fixed ratio (pp: percentage points), 95 % interval of the paired bootstrap over sentences; * where "
    "its lower end is above zero."
)


class OfEvAndRatio(TableReport):
    """A table of EV and the fixed ratios under the main backbone that reads sentences and their token counts."""

    parsed = CoverageParams

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        found = matrix.table_cells(experiment, experiment.tables.backbone)
        return [cell for cell in found if cell.method in (EV, *RIVALS)]

    def inputs(self, experiment: Experiment) -> list[str]:
        cells = self.cells(experiment)
        further = ((testset_file(experiment, cell), tokens_file(experiment, cell)) for cell in cells)
        return [*super().inputs(experiment), *dict.fromkeys(itertools.chain.from_iterable(further))]

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        paths = {cell.name: cell for cell in cells}
        return {
            "shown": [metrics_of(experiment.scoring)[0].name],
            "testsets": {path: testset_file(experiment, cell) for path, cell in paths.items()},
            "tokens": {path: tokens_file(experiment, cell) for path, cell in paths.items()},
        }


class Coverage(OfEvAndRatio):
    """A section for the literal items of each direction, and one for its groups by r."""

    caption = (
        "What EV keeps of the source, beside the fixed ratio: placeholders, numbers and capitalised words that the "
        "output contains as they are, and {metric} by r, the tokens of the reference over those of the source."
    )

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        settings, directions = experiment.coverage, {cell.run.direction for cell in cells}
        buckets = {name: sorted(edges) for name, edges in settings.buckets.items() if name in directions}
        further = {"buckets": buckets, "eos": settings.eos, "paper": _papers_numbers(experiment, cells)}
        return super().extra(experiment, cells) | further

    def numbers(self, params: CoverageParams) -> pd.DataFrame:
        return coverage(params)

    def table(self, params: CoverageParams, numbers: pd.DataFrame) -> Table:
        sections = []
        for (*place, block), rows in numbers.groupby([*PLACE, "block"], sort=False):
            what = "retention, Δ in pp" if block == RETENTION else f"{params.metric.label} by r"
            sections.append(Section(_groups(params, rows), f"{params.place(*place)}: {what}"))
        rivals = [name for name in RIVALS if name in set(numbers["method"])]
        deltas = (Column("[95 % CI]", f"Δ over {method(name).short}") for name in rivals)
        columns = (*_heads("Category", rivals), *deltas)
        return Table(columns, tuple(sections), (*_notes(params, numbers), TESTS, *_beside_the_papers(params, numbers)))


class FaithfulnessSummary(Coverage):
    """The rows of :class:`Coverage` that the paper has in its text, of the directions with groups by r."""

    caption = (
        "Retention of placeholders and numbers, and {metric} where references are short or long for their source: a "
        "summary of the table coverage."
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        return [cell for cell in super().cells(experiment) if cell.run.direction in experiment.coverage.buckets]

    def numbers(self, params: CoverageParams) -> pd.DataFrame:
        """Those of the literal items but names, of the last bucket, and of the first one."""
        numbers = super().numbers(params)
        buckets = numbers[numbers["block"] == BUCKET]
        ends = [buckets.groupby(list(PLACE), sort=False)["item"].transform(end) for end in ("last", "first")]
        literal = numbers[(numbers["block"] == RETENTION) & (numbers["item"] != ENTITIES)]
        return pd.concat([literal, *(buckets[buckets["item"] == end] for end in ends)], ignore_index=True)

    def table(self, params: CoverageParams, numbers: pd.DataFrame) -> Table:
        sections = [
            Section(_groups(params, rows, tested=False), params.place(*place))
            for place, rows in numbers.groupby(list(PLACE), sort=False)
        ]
        rivals = [name for name in RIVALS if name in set(numbers["method"])]
        return Table(_heads("Diagnostic", rivals), tuple(sections), _notes(params, numbers))


def _papers_numbers(experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, dict[str, int]]:
    """By direction, the numbers of sentences that the paper has, where its own test set is looked at whole.

    Those of buckets also depend on the tokenizer: they go with LLaDA's released one.
    """
    source, section = experiment.sources.get(WMT22), experiment.backbones[experiment.tables.backbone]
    if source is None or source.limit or source.challenge or experiment.corpus.test_limit:
        return {}
    hub = section.hub if section.family == "llada" and not section.pretraining else None
    released = hub and find_family(section.family).release(hub.repository)
    found: dict[str, dict[str, int]] = {}
    for name in dict.fromkeys(cell.run.direction for cell in cells if cell.testset == WMT22):
        edges = sorted(experiment.coverage.buckets.get(name, ()))
        items = [*extractors(name.split("-")[0]), *(bucket_names(edges) if released and edges else ())]
        counts = {item: count for item in items if (count := papers_count(name, item)) is not None}
        found |= {name: counts} if counts else {}
    return found


def _heads(first: str, rivals: Sequence[str]) -> tuple[Column, ...]:
    systems = (Column(method(name).short) for name in (*rivals, EV))
    return (Column(first, align="l"), Column("N", align="r"), *systems)


def _groups(params: CoverageParams, rows: pd.DataFrame, tested: bool = True) -> tuple[Group, ...]:
    """A row for each item."""
    found = (
        (block, item, {row.method: row for row in part.itertuples(index=False)})
        for (block, item), part in rows.groupby(["block", "item"], sort=False)
    )
    return tuple(
        Group(_label(params, block, item, tested), (Row(_cells(params, block, systems, tested)),))
        for block, item, systems in found
    )


def _label(params: CoverageParams, block: str, item: str, tested: bool) -> str:
    """What the row is of; the heading says the rest where there is one for each block."""
    name = _item(item)
    if tested:
        return name
    return f"{name.removesuffix('s')} retention" if block == RETENTION else f"{name}: {params.metric.label}"


def _item(name: str) -> str:
    """A kind of items or a bucket as it is printed: Placeholders, r ≥ 0.8."""
    printed = {PLACEHOLDERS: "Placeholders", NUMBERS: "Numbers", ENTITIES: "Capitalised words"}
    return printed.get(name) or name.replace(">=", " ≥ ").replace("<=", " ≤ ").replace("<", " < ")


def _cells(params: CoverageParams, block: str, systems: Mapping[str, Any], tested: bool) -> tuple[Cell, ...]:
    """N, the values of the fixed ratios and EV, and EV's lead over each of the former; dashes where N is 0."""
    count, rivals = systems[EV].sentences, [name for name in RIVALS if name in systems]
    shown = [systems[name] for name in (*rivals, EV)]
    if not count:
        return tuple(map(Cell, ["0", *[formats.NONE] * (len(shown) + tested * len(rivals))]))
    choose = max if block == RETENTION else best(params.metric)
    means = [row.mean for row in shown]
    top = choose(means) if len(set(means)) > 1 else None
    values = [Cell(_value(params, block, mean), bold=mean == top) for mean in means]
    leads = [Cell(_lead(params, block, systems[name])) for name in rivals if tested]
    return (Cell(str(count)), *values, *leads)


def _value(params: CoverageParams, block: str, mean: float) -> str:
    none = float("nan")  # a deviation over sentences is not one over runs
    return formats.percent(mean, none) if block == RETENTION else formats.number(mean, params.metric.decimals)


def _lead(params: CoverageParams, block: str, test: Any) -> str:
    scale, decimals = (100, 1) if block == RETENTION else (1, params.metric.decimals)
    values = (scale * value for value in (test.delta, test.ci_low, test.ci_high))
    return formats.interval(*values, decimals) + "*" * bool(test.ci_low > 0)


def _notes(params: CoverageParams, numbers: pd.DataFrame) -> tuple[Note, ...]:
    """Whose outputs these are, and what is counted."""
    cell, runs = params.cells[0], int(numbers["runs"].max())
    setting = f"{params.label('backbones', cell.backbone)}; reveal order {cell.order}, T = {cell.steps}; "
    reference = "the reference and its EOS" if params.eos else "the reference, without its EOS"
    bold = Note(f"Bold: the best. r: tokens of {reference}, over those of the source.")
    return (Note(f"{setting}{runs} run{'s' * (runs > 1)}."), LITERAL, bold)


def _beside_the_papers(params: CoverageParams, numbers: pd.DataFrame) -> list[Note]:
    """For each direction whose sentences the paper counts, where its numbers and ours differ."""
    lines = []
    for direction, counts in params.paper.items():
        rows = numbers[(numbers["direction"] == direction) & (numbers["method"] == EV)].itertuples(index=False)
        known = ((row, counts[row.item]) for row in rows if row.item in counts)
        other = [f"{_item(row.item)} ({row.sentences}; paper: {n})" for row, n in known if row.sentences != n]
        said = f"as in the paper but for {', '.join(other)}" if other else "as in the paper"
        lines.append(Note(f"N of {params.label('directions', direction)}: {said}."))
    return lines
