"""Finished cells in the folders and formats of mt-metrics-eval, the toolkit that compares metrics.

Its README (google-research/mt-metrics-eval on GitHub) has the format: a folder for each test set, and in it files for
each pair of languages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.config import Experiment
from entropy_valley.config.matrix import Cell, sets_of
from entropy_valley.config.schema import metrics_of
from entropy_valley.errors import InputError
from entropy_valley.results import ancestry, entries, header_path, system_of
from entropy_valley.scoring.metrics import Metric
from entropy_valley.scoring.sets import Outputs
from entropy_valley.tables.reader import Results

REFERENCE = "ref"  # the name of the reference; the format allows no dash and no dot in it


def export(experiment: Experiment, out: Path) -> list[str]:
    """Write all cells that are scored into the new folder ``out``; return a line for each test set and direction.

    A metric is written where it has scored every system of the pair. Raises InputError for an existing ``out``, for a
    config without a scored cell, for results that do not belong together, and for hypotheses that do not fit their
    test set.
    """
    if out.exists():
        raise InputError(out, "exists already", "Name a new folder.")
    root, groups = experiment.results, dict[tuple[str, str], list[Cell]]()
    for one in sets_of(experiment).all:
        if header_path(one.scores(root)).is_file():
            ancestry([one.scores(root)], root)
            scored_cells = entries(header_path(one.scores(root)))
            for cell in (cell for cell in one.cells if system_of(cell) in scored_cells):
                groups.setdefault((cell.testset, cell.direction), []).append(cell)
    if not groups:
        raise InputError(root, "no cell of this config is scored", "Run the workflow first, or name another config.")
    results = Results(experiment, root)
    with files.atomic_folder(out) as new:
        return [_pair(results, new / testset, cells) for (testset, _), cells in groups.items()]


def system(cell: Cell) -> str:
    """The name of a cell as a system: of it files are named, and it must be one word."""
    _, backbone, run, _, *parts = cell.name.split("/")
    return "-".join((backbone, run, *parts))


def _pair(results: Results, folder: Path, cells: Sequence[Cell]) -> str:
    """Write what there is of a test set in one direction."""
    direction, texts = cells[0].direction, {system(cell): results.outputs(cell) for cell in cells}
    outputs = next(iter(texts.values()))
    _lines(folder / "sources" / f"{direction}.txt", outputs.sources)
    _lines(folder / "references" / f"{direction}.{REFERENCE}.txt", outputs.references)
    _lines(folder / "documents" / f"{direction}.docs", [f"{folder.name} {folder.name}"] * len(outputs.ids))
    for name, one in texts.items():
        _lines(folder / "system-outputs" / direction / f"{name}.txt", one.hypotheses)
    scores = {system(cell): _scores(results, cell, outputs) for cell in cells}
    metrics = metrics_of(results.experiment.scoring)
    written = [metric.name for metric in metrics if _metric(folder, direction, metric, scores)]
    return f"{folder.name} {direction}: {len(cells)} systems, {len(outputs.ids)} sentences, {', '.join(written)}"


def _scores(results: Results, cell: Cell, outputs: Outputs) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    """The scores of a system and of each of its sentences."""
    rows = {row["id"]: row for row in results.segments(cell)}
    return results.scores(cell), [rows[name] for name in outputs.ids]


def _metric(folder: Path, direction: str, metric: Metric, scores: Mapping[str, tuple[Any, Sequence[Any]]]) -> bool:
    """Write a metric's scores of systems and sentences; whether it has any. BLEU has none of sentences."""
    name = f"{metric.name}-{'src' if metric.reference_free else REFERENCE}"
    levels = {
        "sys": [(one, of_all.get(metric.name)) for one, (of_all, _) in scores.items()],
        "seg": [(one, row.get(metric.name)) for one, (_, rows) in scores.items() for row in rows],
    }
    complete = {level: rows for level, rows in levels.items() if all(value is not None for _, value in rows)}
    for level, rows in complete.items():
        path = folder / "metric-scores" / direction / f"{name}.{level}.score"
        _lines(path, (f"{one}\t{value}" for one, value in rows))
    return bool(complete)


def _lines(path: Path, texts: Iterable[str]) -> None:
    """One text a line; a line break within a text becomes a space."""
    files.write_text(path, "".join(f"{' '.join(text.splitlines())}\n" for text in texts))
