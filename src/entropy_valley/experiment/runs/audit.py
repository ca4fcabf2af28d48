"""The state of every cell of a config: done, stale or missing, and why.

Which jobs run, Snakemake decides: a dry run lists them with its reasons. What a cell was made from is told by the
headers behind its set, as tables read them, and why a job has failed by its log.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

from entropy_valley.errors import InputError
from entropy_valley.experiment.config.matrix import Cell, CellSet, sets_of
from entropy_valley.experiment.runs import brief, cause_of
from entropy_valley.experiment.runs.jobs import Job, Jobs
from entropy_valley.experiment.tables.reader import MADE_FROM, REMADE, changes, concerns, told
from entropy_valley.results import (
    ABSENT,
    Difference,
    differences,
    entries,
    header_path,
    read_record,
    record_path,
    require_sound,
    system_of,
)

STATES = DONE, STALE, MISSING = ("done", "stale", "missing")
CHANGES = 2  # most params of a job in print


class Reason(NamedTuple):
    """Why a job has to run, or a cell is not done: the rule that makes it so. ``key`` is the param that has changed, if
    one has; ``log`` is the log of an attempt that failed."""

    rule: str
    state: str
    text: str
    key: str = ""
    log: str = ""


class CellState(NamedTuple):
    cell: Cell
    state: str
    reasons: tuple[Reason, ...] = ()


class Audit:
    """The states of a config's cells, by the ``jobs`` of a dry run and what is in the folder of results."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs, self.experiment, self.sets = jobs, jobs.experiment, sets_of(jobs.experiment)
        self.reasons = functools.cache(self._reasons)
        self._changes = functools.cache(functools.partial(changes, self.experiment, self.jobs.root))
        self._sound: set[Path] = set()

    def _reasons(self, job: Job) -> list[Reason]:
        """Why a job runs: its failure, then the params that have changed, else Snakemake's reasons."""
        state = STALE if all(Path(path).exists() for path in job.outputs) else MISSING
        reasons = []
        if error := _error(job):
            reasons.append(Reason(job.rule, state, error, log=job.log))
        changed = _changed_params(job) if state == STALE else []
        reasons += [Reason(job.rule, state, told(change), change.key) for change in changed]
        if not changed:
            reasons += [Reason(job.rule, state, word) for word in brief(job.reason)]
        return reasons

    def why(self, job: Job) -> str:
        """Why a job runs, in a few words."""
        reasons = self.reasons(job)
        changed = [one.text for one in reasons if one.key]
        words = [one.text for one in reasons if not one.key and not one.log]
        if "new" in words and any(one.log for one in reasons):
            words[words.index("new")] = "failed before"
        more = [f"… ({len(changed)} params)"] * (len(changed) > CHANGES)
        return ", ".join([*changed[:CHANGES], *more, *words])

    def cells(self) -> list[CellState]:
        """The state of each cell, in the config's order."""
        return list(map(self.cell, self.sets.home))

    def cell(self, cell: Cell) -> CellState:
        """The state of a cell: whether the headers of its set have it, and what is behind it is that of the config."""
        home = self.sets.home[cell]
        planned = [reason for job in self._planned(home) if is_of(job, cell) for reason in self.reasons(job)]
        try:
            reasons = [one for one in planned if one.state == STALE and (one.log or one.key not in ("", REMADE))]
            for rule, _, change in self._changes(home, cell.testset):
                reasons.append(Reason(rule, STALE, told(change), change.key))
            reasons = [one for one in dict.fromkeys(reasons) if concerns(self.experiment, one.key, cell)]
            reasons = [one for one in reasons if not one.key.startswith(MADE_FROM)] or reasons
            if lacking := self._lacking(home, cell):
                missing = [reason for reason in planned if reason.state == MISSING]
                first = min(missing, key=lambda one: not one.log, default=lacking)
                behind = [one for one in reasons if one.rule not in ("translate", "score")]
                return CellState(cell, MISSING, (first, *behind))
            if not reasons:
                require_sound(Path(home.scores(self.jobs.root)), self.jobs.root, self._sound)
        except InputError as error:
            reasons = [Reason("score", STALE, f"{error.place}: {error.problem}")]
        return CellState(cell, STALE if reasons else DONE, tuple(reasons))

    def _lacking(self, home: CellSet, cell: Cell) -> Reason | None:
        """What there is not of a cell in its set; None where it is complete."""
        root = self.jobs.root
        for rule, path in (("translate", home.translations(root)), ("score", home.scores(root))):
            header = header_path(path)
            if not header.is_file() or (rule == "score" and not Path(path).is_file()):
                return Reason(rule, MISSING, "new")
            if system_of(cell) not in entries(header):
                return Reason(rule, MISSING, "not among the cells of its set yet")
        return None

    def _planned(self, home: CellSet) -> list[Job]:
        """The jobs of the dry run that a set is made by."""
        job = self.jobs.by_output.get(home.scores(self.jobs.root))
        return self.jobs.behind([job]) if job else []

    def new_cells(self, job: Job) -> tuple[Cell, ...]:
        """Of a set that has to run, the cells that its header does not list or that a change concerns: all others are
        in the store. A shard has those of its set."""
        if not job.cells:
            return ()
        home = self.sets.named(job.cells[0].run, job.wildcards["set"]) if "set" in job.wildcards else None
        if home is None or "newer input" in brief(job.reason):
            return job.cells
        changed = [reason.key for one in (job, *self.jobs.read_by(job)) if one.cells for reason in self.reasons(one)]
        keys = [key for key in changed if key not in ("", REMADE)]
        new = []
        for cell in job.cells:
            try:
                lacking = self._lacking(home, cell)
            except InputError:  # a damaged header
                return job.cells
            if lacking or any(concerns(self.experiment, key, cell) for key in keys):
                new.append(cell)
        return tuple(new)


def is_of(job: Job, cell: Cell) -> bool:
    """Whether a job behind a set is one behind this cell: the set may have further test sets."""
    return job.wildcards.get("testset", cell.testset) == cell.testset


def _changed_params(job: Job) -> list[Difference]:
    """The params that the header of a job has otherwise than the config."""
    try:
        record = read_record(record_path(job.outputs[0]))
    except InputError:  # the cells behind it tell
        record = None
    if record is None or not job.spec:
        return []
    changed = differences(record.params, job.params)
    # What is made from something more or less has other params of its own, too.
    return [one for one in changed if not (one.key.startswith(MADE_FROM) and ABSENT in (one.before, one.after))]


def _error(job: Job) -> str:
    """Why the last attempt failed, see :func:`cause_of`. Empty where the outputs are newer than its log."""
    log = Path(job.log)
    newest = max((path.stat().st_mtime for path in map(Path, job.outputs) if path.is_file()), default=0.0)
    return cause_of(log) if log.is_file() and log.stat().st_mtime >= newest else ""
