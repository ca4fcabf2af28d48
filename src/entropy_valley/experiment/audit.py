"""Every cell of the configured matrix, done or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.table import Table

from entropy_valley.experiment.matrix import Cell, all_cells
from entropy_valley.experiment.schema import Experiment
from entropy_valley.files import write_text

DONE, MISSING = "done", "missing"


def audit(experiment: Experiment) -> list[tuple[Cell, str]]:
    """The state of each cell; a cell is done when its system scores are there."""
    return [
        (cell, DONE if Path(cell.scores(experiment.results)).is_file() else MISSING) for cell in all_cells(experiment)
    ]


def write_tsv(path: str | Path, states: Iterable[tuple[Cell, str]]) -> None:
    """One line a cell: its coordinates and its state."""
    rows = [{**cell.key(), "state": state} for cell, state in states]
    lines = ["\t".join(rows[0]), *("\t".join(map(str, row.values())) for row in rows)]
    write_text(path, "\n".join(lines) + "\n")


def report(experiment: Experiment, tsv: str | Path | None = None, log: str | Path | None = None) -> None:
    """Print the state of every cell; on request write it as tab-separated values, and what is printed to a log."""
    states = audit(experiment)
    if tsv:
        write_tsv(tsv, states)
    show(states)
    if log:
        with open(log, "w", encoding="utf-8") as file:
            show(states, file)


def show(states: list[tuple[Cell, str]], file: IO[str] | None = None) -> None:
    """Print done / all by backbone and direction, each missing cell's coordinates grouped, and the total."""
    console = Console(file=file)
    if not console.is_terminal:
        console = Console(file=file, width=120)  # a log has no width to fit
    table = Table(title="Experiment matrix: cells done / all")
    for column in ("backbone", "direction", "test set", "method", "order", "steps", "seeds done", "seeds missing"):
        table.add_column(column)
    for key, group in _by_seed(states).items():
        table.add_row(
            *map(str, key),
            *(
                " ".join(str(cell.run.seed) for cell, state in group if state == wanted) or "–"
                for wanted in (DONE, MISSING)
            ),
        )
    counts = Counter(state for _, state in states)
    console.print(table)
    console.print(f"{len(states)} cells: {counts[DONE]} done, {counts[MISSING]} missing")


def _by_seed(states: list[tuple[Cell, str]]) -> dict[tuple[object, ...], list[tuple[Cell, str]]]:
    groups: dict[tuple[object, ...], list[tuple[Cell, str]]] = {}
    for cell, state in states:
        key = (cell.run.backbone, cell.run.direction, cell.testset, cell.method, cell.order or "–", cell.steps or "–")
        groups.setdefault(key, []).append((cell, state))
    return groups
