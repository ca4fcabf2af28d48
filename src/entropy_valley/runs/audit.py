"""The state of every job and of every cell of a config, and why it is so.

Beside the first output of a job is its record: the params and the inputs that the output was made from. The audit
compares records with the inventory of jobs. It reads no other file but logs, and it decides nothing: what runs is
Snakemake's answer.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley.config import Experiment, param_parts
from entropy_valley.config import params as jobs
from entropy_valley.config.matrix import Cell, remembered
from entropy_valley.errors import InputError
from entropy_valley.files import canonical
from entropy_valley.provenance import ABSENT, Difference, Record, differences, read_record, record_path
from entropy_valley.results import System, system_of
from entropy_valley.runs.inventory import Inventory, Job

STATES = DONE, STALE, FAILED, MISSING = ("done", "stale", "failed", "missing")
COPIES = ("dev_as_testset", "human_forms")  # rules that leave no record
TAIL = 20_000  # bytes of a log, at its end, that are searched for an error


@dataclass(frozen=True)
class Reason:
    """Why a job is not done. ``key`` is the param that has changed, if one has. What ``follows`` from the state of an
    earlier job, or from other cells of a set, is told there."""

    job: Job
    state: str
    text: str
    key: str = ""
    follows: bool = False


@dataclass(frozen=True)
class JobState:
    """``there`` says whether all outputs exist; ``cells`` are those that a set's readable header lists."""

    job: Job
    state: str
    reasons: tuple[Reason, ...] = ()
    there: bool = True
    cells: frozenset[System] | None = None


@dataclass(frozen=True)
class CellState:
    """The worst state along a cell's chain, and the reasons for it, those of its inputs first."""

    cell: Cell
    state: str
    reasons: tuple[Reason, ...] = ()


class Audit:
    """What there is of the results of a config."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory, self.experiment = inventory, inventory.experiment
        self._states: dict[Job, JobState] = {}
        self._records: dict[Job, Record | None] = {}
        self._chains: dict[Job, list[Job]] = {}

    def cells(self) -> list[CellState]:
        """The state of each cell, in the config's order."""
        return [self.cell(cell) for cell in self.inventory.sets.home]

    def cell(self, cell: Cell) -> CellState:
        reasons = [reason for job in self.chain(cell) for reason in self._of_cell(self.job(job), cell)]
        state = next((one for one in (FAILED, MISSING, STALE) if any(why.state == one for why in reasons)), DONE)
        shown = [why for why in reasons if why.state == state]
        return CellState(cell, state, tuple(shown[:1] if state == MISSING else shown))

    def chain(self, cell: Cell) -> list[Job]:
        """The jobs that a cell is made by, each after those that it reads, as far as their state matters: an adapter or
        a corpus that was moved away from finished results is not missed."""
        home = self.inventory.sets.home[cell]
        return [job for job in self._behind(self.inventory.at(home.scores(self.inventory.root))) if _is_of(job, cell)]

    def _behind(self, job: Job) -> list[Job]:
        if job not in self._chains:
            found: dict[Job, None] = {}
            for read in self._inputs(job):
                if self.job(read).there or not self.job(job).there:
                    found |= dict.fromkeys(self._behind(read))
            self._chains[job] = [*found, job]
        return self._chains[job]

    def _inputs(self, job: Job) -> list[Job]:
        return list(dict.fromkeys(filter(None, map(self.inventory.at, job.inputs))))

    def _of_cell(self, found: JobState, cell: Cell) -> Iterator[Reason]:
        """The reasons of a job that concern one cell."""
        for reason in found.reasons:
            if not reason.follows and concerns(self.experiment, reason.key, cell):
                yield reason
        if found.cells is not None and system_of(cell) not in found.cells:
            yield Reason(found.job, MISSING, "not among the cells of its set yet")

    def job(self, job: Job) -> JobState:
        """The state of one job, as its files, its record and its log have it."""
        if job not in self._states:
            found = self._look(job)
            if found.state != DONE and (error := self._error(job)):
                found = JobState(job, FAILED, (Reason(job, FAILED, error),), found.there, found.cells)
            self._states[job] = found
        return self._states[job]

    def _look(self, job: Job) -> JobState:
        lost = [path for path in map(Path, job.outputs) if not path.is_file()]
        if lost:
            text = "not made yet" if len(lost) == len(job.outputs) else f"no {lost[0].name}"
            return JobState(job, MISSING, (Reason(job, MISSING, text),), there=False)
        try:
            record = self._record(job)
        except InputError as error:
            return JobState(job, STALE, (Reason(job, STALE, f"its record {error.place} cannot be read"),))
        if record is None:
            reasons = () if job.rule in COPIES else (Reason(job, STALE, "it has no record of its params"),)
            return JobState(job, STALE if reasons else DONE, reasons)
        changes = tuple(self._changes(job, record))
        listed = record.facts.get("cells", [])
        cells = frozenset(System(*(one[name] for name in System._fields)) for one in listed)
        return JobState(job, STALE if changes else DONE, changes, cells=cells if job.cells else None)

    def _record(self, job: Job) -> Record | None:
        """The record beside a job's first output; raises InputError for one that cannot be read."""
        if job not in self._records:
            self._records[job] = read_record(record_path(job.outputs[0]))
        return self._records[job]

    def _changes(self, job: Job, record: Record) -> Iterator[Reason]:
        """What is not as the record says: the job's files, its params, the files that it was made from."""
        for name, written in record.outputs.items():
            if problem := _problem(Path(job.outputs[0]).parent / name, written["bytes"]):
                yield Reason(job, STALE, problem)
        params, inputs = _params(job), self._inputs(job)
        changes = list(own_changes(record.params, params))
        other_cells = any(change.key == "cells" for change in changes)
        for change in changes:  # what further cells need is told by the cells themselves
            follows = other_cells and ABSENT in (change.before, change.after)
            yield Reason(job, STALE, _said(change), change.key, follows)
        remade, makes = set(), {jobs.digest(read.spec): read for read in inputs}
        for change in _ancestry(record.params, params):
            read, name = makes.get(change.after), Path(change.key.removeprefix("made_from.")).name
            follows = read is not None and self.job(read).state != DONE
            yield Reason(job, STALE, f"made from another {name}", change.key, follows)
            remade.add(read)
        for read in inputs:
            if read not in remade and (name := self._newer(read, record.inputs)):
                yield Reason(job, STALE, f"{name} was made again after it")

    def _newer(self, read: Job, digests: Mapping[str, str]) -> str:
        """The first output of an input whose record has another digest than the job that read it."""
        try:
            made = self._record(read)
        except InputError:
            return ""
        for name, written in made.outputs.items() if made else ():
            path = str(Path(read.outputs[0]).parent / name)
            if digests.get(path, written["digest"]) != written["digest"]:
                return name
        return ""

    def log(self, job: Job) -> str:
        return f"{self.inventory.root}/logs/{job.name}.log"

    def _error(self, job: Job) -> str:
        """Why the last attempt failed, by its log: the first ``error:``, else the last line of a traceback. Empty where
        the outputs are newer."""
        log = Path(self.log(job))
        newest = max((path.stat().st_mtime for path in map(Path, job.outputs) if path.is_file()), default=0.0)
        if not log.is_file() or log.stat().st_mtime < newest:
            return ""
        lines = log.read_bytes()[-TAIL:].decode("utf-8", "replace").splitlines()
        if errors := [line for line in lines if line.startswith("error: ")]:
            return errors[0].strip()
        traceback = any(line.startswith("Traceback ") for line in lines)
        return next((line.strip() for line in reversed(lines) if line.strip()), "") if traceback else ""


def against(before: Inventory, after: Inventory) -> list[CellState]:
    """What becomes of the cells of a second config: missing where the first one does not have them, stale where params
    along their chain differ, else done. No results are looked at."""
    changes = functools.cache(lambda old, new: [*own_changes(_params(old) if old else {}, _params(new))])
    chains = {one: after.behind([one.scores(after.root)]) for one in after.sets.all}
    found = []
    for cell, home in after.sets.home.items():
        if cell not in before.sets.home:
            found.append(CellState(cell, MISSING))
            continue
        pairs = [(_counterpart(job, cell, before, after), job) for job in chains[home] if _is_of(job, cell)]
        reasons = tuple(
            Reason(new, STALE, _said(change), change.key)
            for old, new in pairs
            for change in changes(old, new)
            if concerns(after.experiment, change.key, cell)
        )
        found.append(CellState(cell, STALE if reasons else DONE, reasons))
    return found


def _counterpart(job: Job, cell: Cell, before: Inventory, after: Inventory) -> Job | None:
    """The same job of another config, where a cell may be at home in another set, and results in another folder."""
    if job.cells:
        return before.at(f"{before.sets.folder(cell)}/{Path(job.outputs[0]).name}")
    return before.at(before.root + job.outputs[0].removeprefix(after.root))


def _is_of(job: Job, cell: Cell) -> bool:
    """Whether a job behind a set is one behind this cell: the set may have further test sets."""
    return job.wildcards.get("testset", cell.testset) == cell.testset


def concerns(experiment: Experiment, key: str, cell: Cell) -> bool:
    """Whether a change of a set's params changes one of its cells. Those of another length method, reveal order or
    test set do not."""
    kind, _, rest = key.partition(".")
    name = rest.partition(".")[0]
    match kind:
        case "cells":
            return False  # the header lists those that are there
        case "methods":
            return name in _methods(experiment, cell)
        case "orders":
            return name == cell.order
        case "fits":
            own = experiment.of(cell.run.backbone)
            needs = {"length_statistics": param_parts.needs_statistics, "length_head": param_parts.needs_length_head}
            asked = [needs[name]] if name else needs.values()
            return any(need(own, method) for need in asked for method in _methods(experiment, cell))
        case "made_from":
            return not rest.startswith("testset ") or rest == f"testset {cell.testset}"
    return True


def _methods(experiment: Experiment, cell: Cell) -> list[str]:
    """A cell's length method, and the one whose canvases it reassigns."""
    of = getattr(experiment.length_methods, cell.method).of if cell.method in _reassigned(experiment) else None
    return [cell.method, *filter(None, [of])]


def _reassigned(experiment: Experiment) -> list[str]:
    return remembered(experiment, "reassigned", lambda: param_parts.reassigned_methods(experiment))


def own_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """The params that differ, but for those that say what a result is made from."""
    return (one for one in differences(before, after) if one.key.partition(".")[0] != "made_from")


def _ancestry(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """The inputs that a result had by other params. What one side does not have follows from params of its own."""
    old, new = ({"made_from": side.get("made_from", {})} for side in (before, after))
    return (one for one in differences(old, new) if ABSENT not in (one.before, one.after))


def _params(job: Job) -> dict[str, Any]:
    return json.loads(job.spec or "{}")


def _said(change: Difference) -> str:
    """A change in words; of lists of cells only their lengths differ for people."""
    sides = (change.before, change.after)
    if change.key == "cells" and all(isinstance(one, list) for one in sides):
        old, new = ({*map(canonical, one)} for one in sides)
        return f"cells: {len(new - old)} more, {len(old - new)} fewer"
    return str(change)


def _problem(path: Path, size: int) -> str:
    """What is wrong with a file of ``size`` bytes; "" if nothing is."""
    if not path.is_file():
        return f"no {path.name}"
    now = path.stat().st_size
    return "" if now == size else f"{path.name} has {now} bytes; {size} were written"
