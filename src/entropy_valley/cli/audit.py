"""`entropy-valley audit`: the state of each cell and job in a screenful, as a file, and as a page for a browser."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from entropy_valley.cli import configs
from entropy_valley.cli.commands import FILTERS
from entropy_valley.config import Experiment
from entropy_valley.config.matrix import Cell, all_cells, sets_of
from entropy_valley.errors import InputError, unknown
from entropy_valley.files import write_text
from entropy_valley.runs.audit import (
    DONE,
    MISSING,
    STALE,
    STATES,
    UNNEEDED,
    Audit,
    CellState,
    JobState,
    Reason,
    against,
    versions,
)
from entropy_valley.runs.jobs import Job, Jobs, listed
from entropy_valley.runs.matrix_page import write_matrix
from entropy_valley.runs.plan import Plan, where
from entropy_valley.tables.footnotes import made_by
from entropy_valley.texts import counted

WIDTH = 120  # columns of a log, which has no terminal
RUNS, REASONS, LOGS = 24, 6, 3  # most rows of runs, reasons of a state, and logs of a reason
COLUMNS = ("backbone", "direction", "seed", "testset", "method", "order", "steps", "pool")  # of a cell


def audit(arguments: argparse.Namespace) -> None:
    """What `entropy-valley audit` does."""
    if arguments.against:
        before, after = configs.compare(arguments.configfile, arguments.against)
        over = [*arguments.configfile, *arguments.against]
        compare(listed(before, arguments.configfile), listed(after, over))
        return
    only = {name: getattr(arguments, name) for name in (*FILTERS, "state")}
    # Errors of config files name the file also where Snakemake's do not.
    experiment = None if arguments.snakefile else configs.experiment(arguments.configfile)
    jobs = listed(experiment, arguments.configfile, arguments.snakefile)
    require_known(jobs.experiment, only)
    states = report(jobs, only, cells=arguments.cells or bool(arguments.state))
    if arguments.check and any(one.state != DONE for one in states):
        sys.exit(1)


def report(jobs: Jobs, only: Mapping[str, Sequence[str]], cells: bool = False) -> list[CellState]:
    """Print the audit of a config's jobs; return the states of the cells.

    ``only`` has, by a coordinate of cells or ``state``, the names that are looked at; with ``cells`` these are listed.
    An audit of all cells also writes them as a file and as a page, into the folder ``audit`` of the results.
    """
    audit = Audit(jobs)
    states = [one for one in audit.cells() if is_asked(one, only)]
    whole = not any(only.values())
    chains = dict.fromkeys(job for one in states for job in audit.chain(one.cell))
    job_states = [one for one in audit.all() if whole or one.job in chains]
    show(states, job_states, cells)
    if whole:
        folder = Path(jobs.root, "audit")
        left = [one.job for one in job_states if one.state != DONE]
        try:
            write_tsv(folder / "matrix.tsv", states)
            write_matrix(folder / "matrix.html", audit, states, STATES, Plan.of(audit, left).seconds)
        except OSError as error:  # another's results may be read-only
            print(f"\nThe page of this audit is not written: {error}")
    return states


def require_known(experiment: Experiment, only: Mapping[str, Sequence[str]]) -> None:
    """Raise InputError for a name in ``only``, see :func:`report`, that no cell of the config has."""
    cells = [cell.key() for cell in all_cells(experiment)]
    problems: dict[str, list[str]] = {}
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
    for line in (*why, *made_by(versions(jobs))):
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
    for rule in reversed(dict.fromkeys(one.job.rule for one in reversed(jobs))):
        table.add_row(rule, *_counted(groups[rule], _present(jobs)))
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
    for state_of_cell in states:
        for reason in state_of_cell.reasons:
            shown.add(reason)
            key = (state_of_cell.state, reason.job.rule, reason.text)
            groups.setdefault(key, {})[state_of_cell.cell] = reason
    for state_of_job in jobs:
        for reason in state_of_job.reasons:
            told = reason.state != MISSING or reason.log or reason.text == UNNEEDED
            if reason not in shown and told and not reason.follows:
                key = (state_of_job.state, reason.job.rule, reason.text)
                groups.setdefault(key, {})[state_of_job.job] = reason
    for state in (STALE, MISSING):
        of_state = {key: group for key, group in groups.items() if key[0] == state}
        for (_, rule, text), group in list(of_state.items())[:limit]:
            yield f"{state}: {rule}: {text} ({_number(group)})"
            cells = [_coordinates(one) for one in group if isinstance(one, Cell)]
            if rows := cells or [dict(one.wildcards) for one in group if isinstance(one, Job) and one.wildcards]:
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
    return {**key, "seed": cell.run.name.removeprefix("seed")}


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
    for (*names, why), seeds in groups.items():
        table.add_row(*names, " ".join(map(str, sorted(seeds))), why)
    return table


def compare(before: Jobs, after: Jobs) -> None:
    """Print what a second config changes: jobs by rule, reasons, and what becomes of the cells."""
    states = against(before, after)
    old, new = ({(job.rule, job.name): job.spec for job in one.all} for one in (before, after))
    table = _table("Jobs", ("rule",), ("as before", "changed", "new", "gone"))
    for rule in dict.fromkeys(rule for rule, _ in [*new, *old]):
        names = [key for key in {**new, **old} if key[0] == rule]
        kinds = Counter(_kind(key, old, new) for key in names)
        if kinds["as before"] != len(names):
            numbers = [str(kinds[kind] or "–") for kind in ("as before", "changed", "new", "gone")]
            table.add_row(rule, str(len(names)), *numbers)
    console = _console()
    if table.row_count:
        console.print("", table, "", sep="\n")
    for line in reasons(states):
        console.print(line.replace(STALE, "changed", 1), soft_wrap=True)
    homes = [sets_of(jobs.experiment).home for jobs in (before, after)]
    counts, gone = Counter(one.state for one in states), len(homes[0].keys() - homes[1])
    changed = f"{counts[DONE]} as before, {counts[STALE]} changed, {counts[MISSING]} new, {gone} gone"
    console.print(f"{len(homes[0])} cells before, {len(states)} after: {changed}", soft_wrap=True)


def _kind(key: tuple[str, str], old: Mapping[tuple[str, str], str], new: Mapping[tuple[str, str], str]) -> str:
    if key not in old:
        return "new"
    return "gone" if key not in new else "as before" if old[key] == new[key] else "changed"
