"""The state of every job and cell of a config: done, stale or missing, and why.

Beside the first output of a job is its record: the params and the inputs that the output was made from. The audit
compares records with the jobs that Snakemake lists, and with files and each other as tables do. It decides nothing:
Snakemake alone decides what runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley.config import Experiment, params
from entropy_valley.config.matrix import Cell, CellSet, sets_of
from entropy_valley.config.methods import declares, origins
from entropy_valley.errors import InputError
from entropy_valley.files import canonical
from entropy_valley.results import (
    ABSENT,
    REPORTS,
    Ancestry,
    Difference,
    Record,
    System,
    differences,
    faults,
    read_record,
    record_path,
    system_of,
)
from entropy_valley.runs import cause_of
from entropy_valley.runs.jobs import SHOWING, Job, Jobs

STATES = DONE, STALE, MISSING = ("done", "stale", "missing")
UNNEEDED = "missing, but nothing needs it"  # all that was made from it is there


@dataclass(frozen=True)
class Reason:
    """Why a job is not done. ``key`` is the param that has changed, if one has; ``log`` is the log of an attempt that
    failed. What ``follows`` from the state of an earlier job, or from other cells of a set, is told there."""

    job: Job
    state: str
    text: str
    key: str = ""
    log: str = ""
    follows: bool = False


@dataclass(frozen=True)
class JobState:
    """``exists`` says whether all outputs exist; ``cells`` are those that a set's readable header lists; ``codes`` are
    the versions of the code that have computed them."""

    job: Job
    state: str
    reasons: tuple[Reason, ...] = ()
    exists: bool = True
    cells: frozenset[System] | None = None
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellState:
    """The worst state along a cell's chain, and the reasons for it, those of its inputs first."""

    cell: Cell
    state: str
    reasons: tuple[Reason, ...] = ()


class Audit:
    """The states of a config's jobs and cells, by what is in its folder of results."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs, self.experiment, self.sets = jobs, jobs.experiment, sets_of(jobs.experiment)
        self._states: dict[Job, JobState] = {}

    def cells(self) -> list[CellState]:
        """The state of each cell that the jobs make, in the config's order."""
        scores = {cell: home.scores(self.jobs.root) for cell, home in self.sets.home.items()}
        return [self.cell(cell) for cell, path in scores.items() if path in self.jobs.by_output]

    def cell(self, cell: Cell) -> CellState:
        """The state of a cell. Of a missing one, the reason is a failure, else the first job that is missing."""
        reasons = [reason for job in self.chain(cell) for reason in self._reasons(job, cell)]
        if missing := [reason for reason in reasons if reason.state == MISSING]:
            return CellState(cell, MISSING, (min(missing, key=lambda reason: not reason.log),))
        return CellState(cell, STALE if reasons else DONE, tuple(reasons))

    def _reasons(self, job: Job, cell: Cell) -> list[Reason]:
        """Why a job has to run for a cell, as far as it has reasons of its own."""
        state = self.job(job)
        reasons = [
            reason for reason in state.reasons if not reason.follows and concerns(self.experiment, reason.key, cell)
        ]
        if state.cells is not None and system_of(cell) not in state.cells:
            reasons.append(Reason(job, MISSING, "not among the cells of its set yet"))
        return reasons

    def chain(self, cell: Cell) -> list[Job]:
        """The jobs that a cell is made by, each after those that it reads, as far as their state matters: an adapter or
        a corpus that was moved away is missed only by a job that has to run."""
        has_to_run: dict[Job, bool] = {}

        def add(job: Job) -> bool:
            if job not in has_to_run:
                read = [one for one in self.jobs.read_by(job) if _is_of(one, cell)]
                present, absent = ([one for one in read if self.job(one).exists is there] for there in (True, False))
                runs = any([add(one) for one in present]) or bool(self._reasons(job, cell))
                for one in absent if runs else ():
                    add(one)
                has_to_run[job] = runs
            return has_to_run[job]

        add(self.jobs.by_output[self.sets.home[cell].scores(self.jobs.root)])
        return list(has_to_run)

    def all(self) -> list[JobState]:
        """The state of each job. Of a missing one, where all that read its missing files are done, the reason is
        :data:`UNNEEDED`."""
        readers: dict[str, list[Job]] = {}  # of each file
        states: dict[Job, JobState] = {}
        for job in reversed(self.jobs.all):  # those that read a job are before it
            state = self.job(job)
            needing = [reader for path in job.outputs if not Path(path).exists() for reader in readers.get(path, ())]
            unneeded = needing and all(_is_done(states[reader]) for reader in needing)
            if state.state == MISSING and unneeded and not any(reason.log for reason in state.reasons):
                state = dataclasses.replace(state, reasons=(Reason(job, MISSING, UNNEEDED),))
            states[job] = state
            for path in job.inputs:
                readers.setdefault(path, []).append(job)
        return [states[job] for job in self.jobs.all]

    def job(self, job: Job) -> JobState:
        """The state of one job, by its files, its record and its log."""
        if job not in self._states:
            state = self._state(job)
            if state.state != DONE and (error := self._error(job)):
                failure = Reason(job, state.state, error, log=job.log)
                state = dataclasses.replace(state, reasons=(failure, *state.reasons))
            self._states[job] = state
        return self._states[job]

    def _state(self, job: Job) -> JobState:
        missing = [path for path in map(Path, job.outputs) if not path.exists()]
        if missing:
            text = "not made yet" if len(missing) == len(job.outputs) else f"no {missing[0].name}"
            return JobState(job, MISSING, (Reason(job, MISSING, text),), exists=False)
        try:
            record = read_record(record_path(job.outputs[0]))
        except InputError as error:
            return JobState(job, STALE, (Reason(job, STALE, f"its record {error.place} {error.problem}"),))
        if record is None:  # of a rule that keeps none
            return JobState(job, DONE)
        reasons = tuple(self._changes(job, record))
        listed = record.facts.get("cells", [])
        cells = frozenset(System(*(one[name] for name in System._fields)) for one in listed)
        codes = () if job.rule in REPORTS else tuple(record.facts.get("codes", ()))
        return JobState(job, STALE if reasons else DONE, reasons, cells=cells if job.cells else None, codes=codes)

    def _changes(self, job: Job, record: Record) -> Iterator[Reason]:
        """What is not as the record says: the job's files, its params, the files that it was made from."""
        current, inputs = _params(job), self.jobs.read_by(job)
        changes = _own_changes(record.params, current)
        other_cells = any(change.key == "cells" for change in changes)
        for change in changes:  # what further cells need is told by the cells themselves
            follows = other_cells and ABSENT in (change.before, change.after)
            yield Reason(job, STALE, _text(job, change), change.key, follows=follows)
        # What is only in one of the two follows from params of its own.
        before, after = ({"made_from": side.get("made_from", {})} for side in (record.params, current))
        remade, by_digest = set(), {params.digest(read.spec): read for read in inputs}
        for change in differences(before, after):
            if ABSENT not in (change.before, change.after):
                read, name = by_digest.get(change.after), Path(change.key.removeprefix("made_from.")).name
                follows = read is not None and self.job(read).state != DONE
                yield Reason(job, STALE, f"made from another {name}", change.key, follows=follows)
                remade |= {read} - {None}
        with contextlib.suppress(InputError):  # a record that cannot be read is told where it is
            for fault in faults(Path(job.outputs[0]), record, self.jobs.root):
                if fault.read is None or self.jobs.by_output.get(str(fault.read)) not in remade:
                    yield Reason(job, STALE, fault.text)

    def _error(self, job: Job) -> str:
        """Why the last attempt failed, see :func:`cause_of`. Empty where the outputs are newer than its log."""
        log = Path(job.log)
        newest = max((path.stat().st_mtime for path in map(Path, job.outputs) if path.is_file()), default=0.0)
        return cause_of(log) if log.is_file() and log.stat().st_mtime >= newest else ""


def versions(states: Iterable[JobState]) -> Ancestry:
    """By which code the results of some jobs were computed."""
    codes: dict[str, Counter[str]] = {}
    for one in states:
        codes.setdefault(one.job.rule, Counter()).update(one.codes)
    return Ancestry(codes)


def against(before: Jobs, after: Jobs) -> list[CellState]:
    """What becomes of the cells of a second config: missing where the first one does not have them, stale where params
    along their chain differ, else done. No results are looked at."""
    changes = functools.cache(lambda old, new: _own_changes(_params(old) if old else {}, _params(new)))
    homes, named = sets_of(before.experiment).home, {(job.rule, job.name): job for job in before.all}
    chains: dict[CellSet, list[Job]] = {}
    states = []
    for cell, home in sets_of(after.experiment).home.items():
        if cell not in homes:
            states.append(CellState(cell, MISSING))
            continue
        if home not in chains:
            chains[home] = after.behind([after.by_output[home.scores(after.root)]])
        reasons: list[Reason] = []
        for job in chains[home]:
            if _is_of(job, cell):  # a cell may be at home in another set
                wildcards = {**job.wildcards, "set": homes[cell].name} if "set" in job.wildcards else job.wildcards
                old = named.get((job.rule, dataclasses.replace(job, wildcards=wildcards).name))
                reasons += (
                    Reason(job, STALE, _text(job, change), change.key)
                    for change in changes(old, job)
                    if concerns(after.experiment, change.key, cell)
                )
        states.append(CellState(cell, STALE if reasons else DONE, tuple(reasons)))
    return states


def concerns(experiment: Experiment, key: str, cell: Cell) -> bool:
    """Whether a change of a set's params changes one of its cells. Those of another length method, reveal order or
    test set do not."""
    kind, _, rest = key.partition(".")
    name = rest.partition(".")[0]
    match kind:
        case "cells":
            return False  # the header lists those that exist
        case "methods":
            return name in (cell.method, *origins(experiment, cell.method))
        case "orders":
            return name == cell.order
        case "fits":
            needs = {"length_statistics": "uses_statistics", "learned": "learns", "length_head": "uses_length_head"}
            some = [needs[name]] if name else needs.values()
            methods = (cell.method, *origins(experiment, cell.method))
            return any(declares(experiment, method, need) for need in some for method in methods)
        case "made_from":
            return not rest.startswith("testset ") or rest == f"testset {cell.testset}"
    return True


def _is_of(job: Job, cell: Cell) -> bool:
    """Whether a job behind a set is one behind this cell: the set may have further test sets."""
    return job.wildcards.get("testset", cell.testset) == cell.testset


def _is_done(state: JobState) -> bool:
    return state.state == DONE or any(reason.text == UNNEEDED for reason in state.reasons)


def _params(job: Job) -> dict[str, Any]:
    return json.loads(job.spec or "{}")


def _own_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """The params that differ, but for those that say what a result is made from."""
    return [one for one in differences(before, after) if one.key.partition(".")[0] != "made_from"]


def _text(job: Job, change: Difference) -> str:
    """A change in words: of lists of cells, how many there are more and fewer; of what only one side has, its name."""
    sides = (change.before, change.after)
    if change.key == "cells" and all(isinstance(one, list) for one in sides):
        old, new = ({*map(canonical, one)} for one in sides)
        return f"cells: {len(new - old)} more, {len(old - new)} fewer"
    if job.rule in SHOWING:  # of sections of the config, their spec has digests
        return f"{change.key} changed"
    if ABSENT in sides:
        return f"{change.key} {'added' if change.before is ABSENT else 'removed'}"
    return str(change)
