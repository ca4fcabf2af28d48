"""The state of every cell of a config: done, stale or missing, and why.

Which jobs run, Snakemake decides: a dry run lists them with its reasons. What a cell was made from is told by the
headers behind its set, as tables read them, and why a job has failed by its log.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from entropy_valley.errors import InputError
from entropy_valley.experiment.config.matrix import Cell, CellSet, sets_of
from entropy_valley.experiment.runs import brief, cause_of
from entropy_valley.experiment.runs.jobs import Job, Jobs
from entropy_valley.experiment.tables.report import MADE_FROM, REMADE, changes, concerns, told
from entropy_valley.results import (
    ABSENT,
    Difference,
    System,
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

    @property
    def is_change(self) -> bool:
        """Whether it makes what exists stale; of scores, other translations may only be more."""
        return self.state == STALE and (bool(self.log) or self.key not in ("", REMADE))


class CellState(NamedTuple):
    cell: Cell
    state: str
    reasons: Sequence[Reason] = ()


class Audit:
    """The states of a config's cells, by the ``jobs`` of a dry run and what is in the folder of results."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs, self.experiment, self.sets = jobs, jobs.experiment, sets_of(jobs.experiment)
        self.reasons = functools.cache(self._reasons)
        self._planned = functools.cache(self._planned_of)
        self._systems = functools.cache(self._systems_of)
        self._changes = functools.cache(functools.partial(changes, self.experiment, jobs.root))
        self._sound: set[Path] = set()

    def _reasons(self, job: Job) -> list[Reason]:
        """Why a job runs: its failure, then the params that have changed, else Snakemake's reasons."""
        state = STALE if all(Path(path).exists() for path in job.outputs) else MISSING
        error = _error(job)
        reasons = [Reason(job.rule, state, error, log=job.log)] if error else []
        changed = _changed_params(job) if state == STALE else []
        if changed:
            return reasons + [Reason(job.rule, state, told(change), change.key) for change in changed]
        return reasons + [Reason(job.rule, state, word) for word in brief(job.reason)]

    def why(self, job: Job) -> str:
        """Why a job runs, in a few words."""
        reasons = self.reasons(job)
        changed = [one.text for one in reasons if one.key]
        words = [one.text for one in reasons if not one.key and not one.log]
        if "new" in words and any(one.log for one in reasons):
            words[words.index("new")] = "failed before"
        more = [f"… ({len(changed)} params)"] if len(changed) > CHANGES else []
        return ", ".join([*changed[:CHANGES], *more, *words])

    def cells(self) -> list[CellState]:
        """The state of each cell, in the config's order."""
        return [self.cell(cell) for cell in self.sets.home]

    def cell(self, cell: Cell) -> CellState:
        """The state of a cell: whether the headers of its set have it, and what is behind it is that of the config."""
        home = self.sets.home[cell]
        jobs = [job for job in self._planned(home) if job.wildcards.get("testset", cell.testset) == cell.testset]
        planned = [reason for job in jobs for reason in self.reasons(job)]
        try:
            reasons = [reason for reason in planned if reason.is_change]
            for rule, _, change in self._changes(home, cell.testset):
                reasons.append(Reason(rule, STALE, told(change), change.key))
            reasons = [one for one in dict.fromkeys(reasons) if concerns(self.experiment, one.key, cell)]
            # Why an input is another one says more than that it is.
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
        return CellState(cell, STALE if reasons else DONE, reasons)

    def _planned_of(self, home: CellSet) -> list[Job]:
        """The jobs of the dry run that a set is made by."""
        job = self.jobs.by_output.get(home.scores(self.jobs.root))
        return self.jobs.behind([job]) if job else []

    def _systems_of(self, home: CellSet) -> dict[str, Collection[System] | None]:
        """What the headers of a set list, by rule; None where a header, or the scores, are not there."""
        translations, scores = home.translations(self.jobs.root), Path(home.scores(self.jobs.root))
        systems: dict[str, Collection[System] | None] = {}
        for rule, path in (("translate", translations), ("score", scores)):
            exists = header_path(path).is_file() and (rule == "translate" or scores.is_file())
            systems[rule] = entries(header_path(path)) if exists else None
        return systems

    def _lacking(self, home: CellSet, cell: Cell) -> Reason | None:
        """What there is not of a cell in its set; None where it is complete."""
        for rule, systems in self._systems(home).items():
            if systems is None:
                return Reason(rule, MISSING, "new")
            if system_of(cell) not in systems:
                return Reason(rule, MISSING, "not among the cells of its set yet")
        return None

    def new_cells(self, job: Job) -> Sequence[Cell]:
        """Of a set that has to run, the cells that its header does not list or that a change concerns: all others are
        in the store. A shard has those of its set."""
        if not job.cells or "set" not in job.wildcards or "newer input" in brief(job.reason):
            return job.cells
        home = self.sets.named(job.cells[0].run, job.wildcards["set"])
        try:
            if None in self._systems(home).values():
                return job.cells
        except InputError:  # a damaged header
            return job.cells
        changed = [reason.key for one in (job, *self.jobs.read_by(job)) if one.cells for reason in self.reasons(one)]
        keys = [key for key in changed if key not in ("", REMADE)]
        new = []
        for cell in job.cells:
            if self._lacking(home, cell) or any(concerns(self.experiment, key, cell) for key in keys):
                new.append(cell)
        return new


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
    if not log.is_file():
        return ""
    newest = max((path.stat().st_mtime for path in map(Path, job.outputs) if path.is_file()), default=0.0)
    return cause_of(log) if log.stat().st_mtime >= newest else ""
