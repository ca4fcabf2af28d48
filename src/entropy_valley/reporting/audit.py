"""The audit in a screenful: states by run and by rule, and what is wrong, in words; on request cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.table import Table

from entropy_valley import digest_cache
from entropy_valley.errors import InputError
from entropy_valley.experiment import Experiment, plan, repair
from entropy_valley.experiment.audit import Audit, CellState
from entropy_valley.experiment.findings import DAMAGED, DONE, FAILED, MISSING, STALE, STATES, Finding
from entropy_valley.experiment.matrix import all_cells
from entropy_valley.experiment.repair import Damage
from entropy_valley.experiment.result import RULES, Result
from entropy_valley.files import write_text
from entropy_valley.reporting.changes import counted, said
from entropy_valley.reporting.pages import matrix
from entropy_valley.spelling import unknown

WIDTH = 120  # columns of a log, which has no terminal
ROOM = 100  # columns of the cells that a reason concerns
RUNS, REASONS, LOGS = 24, 6, 3  # most rows of runs, reasons of a state, and logs of a reason
BESIDE = 18  # most lines of damage that no cell shows
COLUMNS = ("backbone", "direction", "seed", "testset", "method", "order", "steps", "pool")  # of a cell


def report(
    experiment: Experiment,
    tsv: str | Path | None = None,
    log: str | Path | None = None,
    *,
    only: Mapping[str, Sequence[str]] | None = None,
    page: str | Path | None = None,
    cells: bool = False,
    verify: bool = False,
) -> bool:
    """Print the audit of a config; on request write the cells as tab-separated values and as a page for a browser, and
    what is printed to a log.

    ``only`` has, by the name of a column, the values of the cells that are looked at; ``cells`` prints them, too;
    ``verify`` reads each file, whether it has changed or not. Returns whether all is done, and nothing damaged.
    """
    with digest_cache.reading_all(verify):
        audit = Audit(experiment)
        states = [one for one in audit.cells() if is_asked(one, only or {})]
        further = [*_hidden(audit, states), *([] if any((only or {}).values()) else repair.beside(audit))]
    audit.written.digests.keep()
    if tsv:
        write_tsv(tsv, experiment, states)
    if page:
        matrix.write(page, audit, states, partial(because, experiment))
    show(audit, states, cells, further=further)
    if log:
        with open(log, "w", encoding="utf-8") as file:
            show(audit, states, cells, file, further)
    return not further and all(one.state == DONE for one in states)


def _hidden(audit: Audit, states: Sequence[CellState]) -> list[Damage]:
    """Damaged results of cells that are in another state before that."""
    said = {reason.result for one in states for reason in one.reasons}
    found = repair.of_results(audit, (one.cell for one in states))
    return [damage for result, damage in found.items() if result not in said]


def require_known(experiment: Experiment, only: Mapping[str, Sequence[str]]) -> None:
    """Raise InputError for a name in ``only``, see :func:`report`, that no cell of the config has."""
    asked = [column for column, names in only.items() if names and column != "state"]
    cells = [cell.key() for cell in all_cells(experiment)] if asked else []
    known = {column: sorted({str(cell[column]) for cell in cells}) for column in asked}
    wrong = [(column, name) for column, names in known.items() for name in only[column] if name not in names]
    problems = [
        unknown(name, f"no cell of the config has the {column} {name!r}", known[column]) for column, name in wrong
    ]
    if problems:
        options = ", ".join(dict.fromkeys(f"--{column}" for column, _ in wrong))
        raise InputError(options, "; ".join(problems), "`entropy-valley audit --cells` lists the cells of a config.")


def is_asked(state: CellState, only: Mapping[str, Sequence[str]]) -> bool:
    """Whether a cell is among those that are looked at, see :func:`report`."""
    said = {**state.cell.key(), "state": state.state}
    return all(str(said[column]) in values for column, values in only.items() if values)


def write_tsv(path: str | Path, experiment: Experiment, states: Iterable[CellState]) -> None:
    """One line a cell: its coordinates, its state, and the rule, the reason and the log behind it."""
    columns = [*COLUMNS, "state", "rule", "why", "log"]
    rows = [
        [*(one.cell.key().get(name, "") for name in COLUMNS), one.state, *_behind(experiment, one)] for one in states
    ]
    write_text(path, "".join("\t".join(map(str, row)) + "\n" for row in [columns, *rows]))


def _behind(experiment: Experiment, state: CellState) -> tuple[str, str, str]:
    texts = dict.fromkeys(because(experiment, reason) for reason in state.reasons)
    rules = dict.fromkeys(reason.result.rule for reason in state.reasons)
    logs = dict.fromkeys(reason.result.log for reason in state.reasons if state.state == FAILED)
    return " ".join(rules), "; ".join(texts).replace("\t", " "), " ".join(logs)


def show(
    audit: Audit,
    states: Sequence[CellState],
    cells: bool = False,
    file: IO[str] | None = None,
    further: Sequence[Damage] = (),
) -> None:
    """Print states by run and by rule, the reasons, and ``further`` damage; with ``cells`` also each cell."""
    console = Console(file=file, highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(file=file, width=WIDTH, highlight=False, markup=False)
    for table in (_runs(states), _rules(audit, states)):
        console.print(table)
        console.print()
    for line in reasons(audit.experiment, states):
        console.print(line, soft_wrap=True)
    for one in further[:BESIDE]:
        console.print(f"damaged: {one.rule}: {one.place}: {one.why}", soft_wrap=True)
    if len(further) > BESIDE:
        console.print(f"damaged: … and {len(further) - BESIDE} more; --repair lists all")
    if cells:
        console.print(_cells(audit.experiment, states))
    console.print(total(states), soft_wrap=True)


def total(states: Sequence[CellState]) -> str:
    """The last line."""
    counts = Counter(one.state for one in states)
    named = ", ".join(f"{counts[name]} {name}" for name in STATES if counts[name] or name in (DONE, MISSING))
    unknown = sum(not one.recorded for one in states)
    said = f"\n{unknown} of them have no record of their settings beside them: whether these are stale is not known."
    return f"{len(states)} cells: {named}" + said * (unknown > 0)


def _runs(states: Sequence[CellState]) -> Table:
    """A row for each backbone and direction, or for each backbone where these are too many."""
    pairs = {(one.cell.run.backbone, one.cell.run.direction) for one in states}
    groups: dict[tuple[str, str], list[CellState]] = {}
    for one in states:
        run = one.cell.run
        key = (run.backbone, run.direction if len(pairs) <= RUNS else "")
        groups.setdefault(key, []).append(one)
    table = _table("Cells of the matrix", states, ("backbone", "direction", "seeds"))
    for (backbone, direction), group in groups.items():
        directions = direction or f"{len({one.cell.run.direction for one in group})} directions"
        seeds = plan.numbers(sorted({one.cell.run.seed for one in group}))
        table.add_row(backbone, directions, seeds, *_counted(states, group))
    return table


def _rules(audit: Audit, states: Sequence[CellState]) -> Table:
    """A row for each rule: its jobs, of which others are made."""
    found = sorted(audit.results(one.cell for one in states), key=lambda one: RULES.index(one.result.rule))
    groups: dict[str, list[Finding]] = {}
    for one in found:
        groups.setdefault(one.result.rule, []).append(one)
    table = _table("Jobs that they are made by", found, ("rule",))
    for rule, group in groups.items():
        table.add_row(rule, *_counted(found, group))
    return table


def _table(title: str, found: Sequence[Any], columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column)
    for column in ("all", *_present(found)):
        table.add_column(column, justify="right")
    return table


def _present(found: Sequence[Any]) -> list[str]:
    """The states that some have; done and missing always."""
    there = {one.state for one in found} | {DONE, MISSING}
    return [state for state in STATES if state in there]


def _counted(found: Sequence[Any], group: Sequence[Any]) -> list[str]:
    counts = Counter(one.state for one in group)
    return [str(len(group)), *(str(counts[state] or "–") for state in _present(found))]


def reasons(experiment: Experiment, states: Iterable[CellState]) -> Iterator[str]:
    """What is wrong, the same reason once: the rule, the reason, how many cells, which jobs, and logs of failures."""
    groups: dict[tuple[str, str, str], dict[Finding, int]] = {}
    for one in states:
        for reason in one.reasons:
            key = (one.state, reason.result.rule, because(experiment, reason, named=False))
            counts = groups.setdefault(key, {})
            counts[reason] = counts.get(reason, 0) + 1
    for state in (FAILED, DAMAGED, STALE, MISSING):
        of_state = [(rule, counts) for (name, rule, _), counts in groups.items() if name == state]
        for rule, counts in of_state[:REASONS]:
            jobs = [one.result for one in counts]
            text = because(experiment, next(iter(counts)), jobs)
            yield f"{state}: {rule}: {text} ({counted(sum(counts.values()), 'cell')})"
            yield from (f"    {line}" for line in plan.lines([job.wildcards for job in jobs], ROOM))
            if state == FAILED:
                yield from (f"    log: {job.log}" for job in jobs[:LOGS])
                if len(jobs) > LOGS:
                    yield f"    … and {len(jobs) - LOGS} more logs beside it"
        if len(of_state) > REASONS:
            yield f"{state}: … and {len(of_state) - REASONS} more reasons; --cells --state {state} lists all"


def because(experiment: Experiment, reason: Finding, shared: Sequence[Result] = (), named: bool = True) -> str:
    """Why a result is as it is, in words, with the names of length methods: its own, or those of the results that
    share the reason."""
    one, jobs = reason.result, shared or [reason.result]
    methods = dict.fromkeys(job.wildcards["method"] for job in jobs if named and "method" in job.wildcards)
    texts = (said(experiment, one.rule, one.wildcards, change, [*methods]) for change in reason.changed)
    return "; ".join(dict.fromkeys(texts)) or reason.why


def _cells(experiment: Experiment, states: Iterable[CellState]) -> Table:
    """A row for each system of a test set and state; its seeds side by side."""
    table = Table(title="Cells", title_justify="left")
    for column in ("state", "backbone", "direction", "test set", "method", "order", "T", "seeds", "why"):
        table.add_column(column)
    groups: dict[tuple[str, ...], list[int]] = {}
    for one in states:
        cell, (rule, text, _) = one.cell, _behind(experiment, one)
        place = (cell.run.backbone, f"{cell.run.direction} {cell.run.pool}".strip(), cell.testset, cell.method)
        setting = (cell.order or "–", str(cell.steps or "–"))
        key = (one.state, *place, *setting, f"{rule}: {text}" if text else "")
        groups.setdefault(key, []).append(cell.run.seed)
    for (*key, why), seeds in groups.items():
        table.add_row(*key, plan.numbers(sorted(seeds)), why)
    return table
