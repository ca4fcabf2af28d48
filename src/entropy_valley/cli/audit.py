"""`entropy-valley audit`: the state of each cell and job in a screenful, as a file, and as a page for a browser."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from entropy_valley.cli import configs
from entropy_valley.config import Experiment
from entropy_valley.config.matrix import Cell, all_cells
from entropy_valley.errors import InputError, unknown
from entropy_valley.files import write_text
from entropy_valley.runs.audit import (
    DONE,
    MISSING,
    STALE,
    STATES,
    Audit,
    CellState,
    JobState,
    Reason,
    against,
    versions,
)
from entropy_valley.runs.inventory import Inventory, Job
from entropy_valley.runs.plan import Plan, counted, where
from entropy_valley.tables import pages
from entropy_valley.tables.notes import made_by

WIDTH = 120  # columns of a log, which has no terminal
RUNS, REASONS, LOGS = 24, 6, 3  # most rows of runs, reasons of a state, and logs of a reason
COLUMNS = ("backbone", "direction", "seed", "testset", "method", "order", "steps", "pool")  # of a cell
FILTERS = ("backbone", "direction", "testset", "method")


def add(commands: Any) -> None:
    parser = commands.add_parser("audit", help="say which cells are done, stale or missing, and why")
    configs.add(parser)
    parser.add_argument("--cells", action="store_true", help="also list the cells")
    parser.add_argument("--state", nargs="+", default=[], choices=STATES, help="list the cells of these states only")
    for column in FILTERS:
        parser.add_argument(f"--{column}", nargs="+", default=[], metavar="NAME", help=f"only cells of a {column}")
    parser.add_argument(
        "--against",
        nargs="+",
        metavar="FILE",
        help="config files laid over those above: say instead what changes with them",
    )
    parser.add_argument("--check", action="store_true", help="end with status 1 unless all of these cells are done")
    parser.set_defaults(command=_audit)


def _audit(arguments: argparse.Namespace) -> None:
    if arguments.against:
        before, after = configs.compare(arguments.configfile, arguments.against)
        compare(before, after)
        return
    only = {name: getattr(arguments, name) for name in (*FILTERS, "state")}
    experiment = configs.experiment(arguments.configfile)
    require_known(experiment, only)
    states = report(experiment, only, cells=arguments.cells or bool(arguments.state))
    if arguments.check and any(one.state != DONE for one in states):
        sys.exit(1)


def report(experiment: Experiment, only: Mapping[str, Sequence[str]], cells: bool = False) -> list[CellState]:
    """Print the audit of a config; return the states of the cells.

    ``only`` has, by the name of a column, the values of the cells that are looked at; ``cells`` lists them, too. The
    audit of all cells is also written to ``audit/matrix.tsv`` and ``audit/matrix.html`` in the results.
    """
    audit = Audit(Inventory(experiment))
    states = [one for one in audit.cells() if is_asked(one, only)]
    whole = not any(only.values())
    chains = (job for one in states for job in audit.chain(one.cell))
    jobs = [audit.job(job) for job in (audit.inventory.all() if whole else dict.fromkeys(chains))]
    show(states, jobs, cells)
    if whole:
        folder = Path(experiment.results, "audit")
        try:
            write_tsv(folder / "matrix.tsv", states)
            pages.write_matrix(folder / "matrix.html", audit, states, STATES, _planned(audit, jobs))
        except OSError as error:  # another's results may be read-only
            print(f"\nThe page of this audit is not written: {error}")
    return states


def _planned(audit: Audit, jobs: Sequence[JobState]) -> dict[Job, float]:
    """The seconds that each job which is not done will take; of a set, what is new in it."""
    left = [one.job for one in jobs if one.state != DONE]
    return Plan.of(audit, left, [one.job for one in jobs if one.exists]).seconds


def require_known(experiment: Experiment, only: Mapping[str, Sequence[str]]) -> None:
    """Raise InputError for a name in ``only``, see :func:`report`, that no cell of the config has."""
    cells = [cell.key() for cell in all_cells(experiment)]
    problems = {}
    for column, names in only.items():
        values = sorted({str(cell[column]) for cell in cells}) if column != "state" else STATES
        for name in names:
            if name not in values:
                problem = unknown(name, f"no cell of the config has the {column} {name!r}", values)
                problems.setdefault(f"--{column}", []).append(problem)
    if problems:
        text = "; ".join(itertools.chain(*problems.values()))
        raise InputError(", ".join(problems), text, "`entropy-valley audit --cells` lists the cells of a config.")


def is_asked(state: CellState, only: Mapping[str, Sequence[str]]) -> bool:
    """Whether a cell is among those that are looked at, see :func:`report`."""
    values = {**state.cell.key(), "state": state.state}
    return all(str(values[column]) in names for column, names in only.items() if names)


def write_tsv(path: Path, states: Iterable[CellState]) -> None:
    """One line a cell: its coordinates, its state, and the rule, the reason and the log behind it."""
    rows = [[*COLUMNS, "state", "rule", "why", "log"]]
    for one in states:
        key, texts = one.cell.key(), dict.fromkeys(reason.text.replace("\t", " ") for reason in one.reasons)
        rules = dict.fromkeys(reason.job.rule for reason in one.reasons)
        logs = dict.fromkeys(reason.log for reason in one.reasons if reason.log)
        reason = [" ".join(rules), "; ".join(texts), " ".join(logs)]
        rows.append([*(str(key.get(name, "")) for name in COLUMNS), one.state, *reason])
    write_text(path, "".join("\t".join(row) + "\n" for row in rows))


def show(states: Sequence[CellState], jobs: Sequence[JobState], cells: bool = False) -> None:
    """Print states by run and by rule, the reasons, and what several versions of the code have made; with ``cells``
    also each cell."""
    console = _console()
    for table in (_runs(states), _rules(jobs)):
        console.print(table)
        console.print()
    why = reasons(states, jobs, None if cells else REASONS)
    for line in (*why, *(note.text for note in made_by(versions(jobs)))):
        console.print(line, soft_wrap=True)
    if cells:
        console.print(_cells(states))
    console.print(total(states), soft_wrap=True)


def _console() -> Console:
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(width=WIDTH, highlight=False, markup=False)


def total(states: Sequence[CellState]) -> str:
    """The last line."""
    counts = Counter(one.state for one in states)
    named = ", ".join(f"{counts[name]} {name}" for name in STATES if counts[name] or name in (DONE, MISSING))
    return f"{len(states)} cells: {named}"


def _runs(states: Sequence[CellState]) -> Table:
    """A row for each backbone and direction, or for each backbone where these are too many."""
    pairs = {(one.cell.run.backbone, one.cell.run.direction) for one in states}
    groups: dict[tuple[str, str], list[CellState]] = {}
    for one in states:
        run = one.cell.run
        groups.setdefault((run.backbone, run.direction if len(pairs) <= RUNS else ""), []).append(one)
    table = _table("Cells of the matrix", ("backbone", "direction", "seeds"), _present(states))
    for (backbone, direction), group in groups.items():
        directions = direction or f"{len({one.cell.run.direction for one in group})} directions"
        seeds = sorted({one.cell.run.seed for one in group})
        table.add_row(backbone, directions, " ".join(map(str, seeds)), *_counted(group, _present(states)))
    return table


def _rules(jobs: Sequence[JobState]) -> Table:
    """A row for each rule, those that others read first."""
    groups: dict[str, list[JobState]] = {}
    for one in jobs:
        groups.setdefault(one.job.rule, []).append(one)
    table = _table("Jobs", ("rule",), _present(jobs))
    for rule, group in groups.items():
        table.add_row(rule, *_counted(group, _present(jobs)))
    return table


def _table(title: str, columns: Sequence[str], states: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column)
    for column in ("all", *states):
        table.add_column(column, justify="right")
    return table


def _present(states: Sequence[CellState | JobState]) -> list[str]:
    """The states that some have; done and missing always."""
    present = {one.state for one in states} | {DONE, MISSING}
    return [state for state in STATES if state in present]


def _counted(group: Sequence[CellState | JobState], states: Sequence[str]) -> list[str]:
    counts = Counter(one.state for one in group)
    return [str(len(group)), *(str(counts[state] or "–") for state in states)]


def reasons(states: Iterable[CellState], jobs: Iterable[JobState] = (), limit: int | None = None) -> Iterator[str]:
    """Why cells are not done, the same reason once: the rule, the reason, the cells, and logs of failures; then why
    other jobs are not. At most ``limit`` reasons of each state."""
    groups: dict[tuple[str, str, str], dict[Cell | Job, Reason]] = {}
    shown = set()
    for one in states:
        for reason in one.reasons:
            shown.add(reason)
            groups.setdefault((one.state, reason.job.rule, reason.text), {})[one.cell] = reason
    for one in jobs:
        for reason in one.reasons:
            if reason not in shown and (reason.state != MISSING or reason.log) and not reason.follows:
                groups.setdefault((one.state, reason.job.rule, reason.text), {})[one.job] = reason
    for state in (STALE, MISSING):
        of_state = {key: group for key, group in groups.items() if key[0] == state}
        for (_, rule, text), group in list(of_state.items())[:limit]:
            yield f"{state}: {rule}: {text} ({_number(group)})"
            cells = [_coordinates(one) for one in group if isinstance(one, Cell)]
            if rows := cells or [one.wildcards for one in group if one.wildcards]:
                yield f"    {where(rows)}"
            logs = list(dict.fromkeys(one.log for one in group.values() if one.log))
            yield from (f"    log: {log}" for log in logs[:LOGS])
            if len(logs) > LOGS:
                yield f"    … and {len(logs) - LOGS} more logs beside it"
        if limit and len(of_state) > limit:
            yield f"{state}: … and {len(of_state) - limit} more reasons; --cells lists all"


def _number(group: Iterable[Cell | Job]) -> str:
    kinds = Counter("cell" if isinstance(one, Cell) else "job" for one in group)
    return ", ".join(counted(count, kind) for kind, count in kinds.items())


def _coordinates(cell: Cell) -> dict[str, str]:
    """A cell as rows of cells are printed."""
    key = {name: str(value or "–") for name, value in cell.key().items() if name != "pool"}
    budget = f"T {cell.steps}" if cell.steps else "–"
    return {**key, "seed": cell.run.name.removeprefix("seed"), "steps": budget}


def _cells(states: Iterable[CellState]) -> Table:
    """A row for each system of a test set and state; its seeds side by side."""
    table = Table(title="Cells", title_justify="left")
    for column in ("state", "backbone", "direction", "test set", "method", "order", "T", "seeds", "why"):
        table.add_column(column)
    groups: dict[tuple[str, ...], list[int]] = {}
    for one in states:
        cell, texts = one.cell, dict.fromkeys(f"{reason.job.rule}: {reason.text}" for reason in one.reasons)
        place = (cell.run.backbone, f"{cell.run.direction} {cell.run.pool}".strip(), cell.testset, cell.method)
        key = (one.state, *place, cell.order or "–", str(cell.steps or "–"), "; ".join(texts))
        groups.setdefault(key, []).append(cell.run.seed)
    for (*key, why), seeds in groups.items():
        table.add_row(*key, " ".join(map(str, sorted(seeds))), why)
    return table


def compare(before: Experiment, after: Experiment) -> None:
    """Print what a second config changes: jobs by rule, reasons, and what becomes of the cells."""
    inventories = Inventory(before), Inventory(after)
    states = against(*inventories)
    old, new = ({_named(one, job): _spec(one, job) for job in one.all()} for one in inventories)
    table = _table("Jobs", ("rule",), ("as before", "changed", "new", "gone"))
    for rule in dict.fromkeys(rule for rule, _ in [*new, *old]):
        names = [key for key in {**new, **old} if key[0] == rule]
        kinds = Counter(_kind(key, old, new) for key in names)
        counts = [str(kinds[kind] or "–") for kind in ("as before", "changed", "new", "gone")]
        if kinds["as before"] != len(names):
            table.add_row(rule, str(len(names)), *counts)
    console = _console()
    if table.row_count:
        console.print("", table, "", sep="\n")
    for line in reasons(states):
        console.print(line.replace(STALE, "changed", 1), soft_wrap=True)
    counts, gone = Counter(one.state for one in states), len(inventories[0].sets.home.keys() - inventories[1].sets.home)
    changed = f"{counts[DONE]} as before, {counts[STALE]} changed, {counts[MISSING]} new, {gone} gone"
    console.print(f"{len(inventories[0].sets.home)} cells before, {len(states)} after: {changed}", soft_wrap=True)


def _named(inventory: Inventory, job: Job) -> tuple[str, str]:
    return job.rule, job.name


def _spec(inventory: Inventory, job: Job) -> str:
    """The params of a job as if the results were in the same folder for all configs."""
    return job.spec.replace(f'"{inventory.root}/', '"')


def _kind(key: tuple[str, str], old: Mapping[tuple[str, str], str], new: Mapping[tuple[str, str], str]) -> str:
    if key not in old:
        return "new"
    return "gone" if key not in new else "as before" if old[key] == new[key] else "changed"
