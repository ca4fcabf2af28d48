"""The table of a study: a section for each backbone and direction, a row for each system, the columns it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from entropy_valley.analysis.gap_closure import BASELINES
from entropy_valley.analysis.study import BEST, CLOSURES, MAIN, PLACE, TIMED, StudyParams, metrics_by_column, study
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.experiment.params.methods import is_ratio_without_slot, reassigned_methods, selector_settings
from entropy_valley.experiment.schema import Study, metrics_of
from entropy_valley.late import pandas as pd
from entropy_valley.reporting import notes
from entropy_valley.reporting.labels import method, method_in
from entropy_valley.reporting.report import OfStudy, TableReport
from entropy_valley.reporting.reports.study_columns import NOTES, Cells, System, columns_of, systems
from entropy_valley.reporting.results import best
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table
from entropy_valley.scoring.metrics import Metric


class Systems(OfStudy, TableReport):
    """Systems beside each other: a section for each backbone and direction, a row for each system, the columns that
    the study asks for. Bold are the best scores of the systems that could be deployed."""

    caption = (
        "Systems beside each other, as a study of the config names them: scores, costs and the lead of one system "
        "over each of the others, sentence by sentence. Oracle uses the reference's length and is an upper bound; the "
        "CSV has every run."
    )
    parsed = StudyParams
    tells_pools = True

    def inputs(self, experiment: Experiment) -> list[str]:
        columns, cells = experiment.studies[self.name].columns, self.cells(experiment)
        timed = [cell.latency(experiment.results) for cell in cells] if _timed(columns) else []
        return [*super().inputs(experiment), *timed]

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        """What the table shows, the system whose lead is tested, and the candidate ratios of each method."""
        study, tables = experiment.studies[self.name], experiment.tables
        metrics = metrics_by_column(metrics_of(experiment.scoring))
        shown = [metrics[name].name for name in (MAIN, "bleu", *study.columns) if name in metrics]
        grids: dict[str, dict[str, Any]] = {}
        for direction, name in dict.fromkeys((cell.run.direction, cell.method) for cell in cells):
            grids.setdefault(direction, {})[name] = selector_settings(experiment, name, direction).get("ratios")
        methods = dict.fromkeys(cell.method for cell in cells)
        fixed = [name for name in methods if is_ratio_without_slot(experiment, name)]
        return {
            **({"fixed": fixed} if BEST in study.columns else {}),
            "columns": study.columns,
            "shown": list(dict.fromkeys(shown)),
            "against": [study.against, tables.order, tables.steps],
            "grids": grids,
        }

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[matrix.Cell]) -> Iterator[str]:
        """A method that deals another's canvases has nothing to time by itself."""
        timed = {cell.method for cell in cells} if _timed(study.columns) else set()
        for name in reassigned_methods(experiment):
            if name in timed:
                yield f"method {name!r} takes another's canvases and has no latency; remove it, or that column"

    def numbers(self, params: StudyParams) -> pd.DataFrame:
        return study(params)

    def table(self, params: StudyParams, numbers: pd.DataFrame) -> Table:
        columns = columns_of(params)
        found: dict[tuple[Any, ...], list[System]] = {}
        for system in systems(params, numbers):
            found.setdefault(tuple(system.key[name] for name in PLACE), []).append(system)
        sections = tuple(
            Section(tuple(_group(system, rows, columns) for system in rows), _heading(params, place, rows))
            for place, rows in found.items()
        )
        head = (Column("System", align="l"), *(column for column, _ in columns.values()))
        timing = notes.timing(params) if _timed(params.columns) else ()
        shares = [baseline for column, baseline in zip(CLOSURES, BASELINES, strict=True) if column in params.columns]
        return Table(head, sections, (*_notes(params), *notes.doubtful_gaps(params, shares), *timing))


def _timed(columns: Sequence[str]) -> bool:
    return bool(TIMED.keys() & set(columns))


def _group(system: System, rivals: Sequence[System], columns: Mapping[str, tuple[Column, Cells]]) -> Group:
    metrics = metrics_by_column(system.params.metrics)
    cells = (
        Cell(text(system), name in metrics and _is_best(system, rivals, name, metrics[name]))
        for name, (_, text) in columns.items()
    )
    return Group(_label(system), (Row(tuple(cells), shaded=system.is_tested),))


def _label(system: System) -> str:
    """The method; order and T where they are not the main ones and have no column, as for a method's own filling."""
    params, key = system.params, system.key
    label = method_in(params, key["method"], key["direction"])
    _, order, steps = params.against
    unsaid = {"order": (order, key["order"]), "steps": (f"T = {steps}", f"T = {key['steps']}")}
    others = [own for name, (main, own) in unsaid.items() if name not in params.columns and own != main]
    return ", ".join([label, *others])


def _is_best(system: System, rivals: Sequence[System], name: str, metric: Metric) -> bool:
    deployable = [rival for rival in rivals if not method(rival.key["method"]).upper_bound]
    return system in deployable and system.mean[name] == best(metric)(rival.mean[name] for rival in deployable)


def _heading(params: StudyParams, place: Sequence[str], rows: Sequence[System]) -> str:
    backbone, direction, testset, pool = place
    sentences, trained = f"N = {rows[0].mean['sentences']:.0f}", [f"pool of {pool} training pairs"] if pool else []
    return ", ".join([params.label("backbones", backbone), params.place(direction, testset), *trained, sentences])


def _notes(params: StudyParams) -> tuple[Note, ...]:
    _, order, steps = params.against
    seeds = len({cell.seed for cell in params.cells})
    first = f"Reveal order {order}, T = {steps}, unless a row says otherwise; {seeds} run{'s' if seeds > 1 else ''}"
    lines = [
        f"{first}{' (mean ± sample standard deviation)' if seeds > 1 else ''}. Bold: the best but for upper bounds.",
        *(NOTES[name] for name in params.columns if name in NOTES),
    ]
    return tuple(Note(line) for line in lines)
