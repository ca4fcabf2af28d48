"""The state of every cell of a config: done, stale or missing, and why.

Which jobs run, Snakemake decides: a dry run lists them with its reasons. What a cell was made from is told by the
headers behind its set, as tables read them, and why a job has failed by its log.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from entropy_valley.errors import InputError
from entropy_valley.experiment.config.matrix import Cell, CellSet, sets_of
from entropy_valley.experiment.runs import brief, cause_of
from entropy_valley.experiment.runs.jobs import Job, Jobs
from entropy_valley.experiment.tables.report import MADE_FROM, REMADE, changes, concerns, told
from entropy_valley.results import ABSENT, Difference, changed_params, entries, record_path, require_sound, system_of

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
    reasons: Sequence[Reason]


class Audit:
    """The states of a config's cells, by the ``jobs`` of a dry run and what is in the folder of results. ``reasons``
    has those of each job: its failure, then the params that have changed, else Snakemake's."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs, self.experiment, self.root = jobs, jobs.experiment, jobs.experiment.results
        self.sets = sets_of(self.experiment)
        self.reasons = {job: _reasons(job) for job in jobs.all}

    def why(self, job: Job) -> str:
        """Why a job runs, in a few words."""
        reasons = self.reasons[job]
        changed = [one.text for one in reasons if one.key]
        words = [one.text for one in reasons if not one.key and not one.log]
        if any(one.log for one in reasons):
            words = ["failed before" if word == "new" else word for word in words]
        if len(changed) > CHANGES:
            changed[CHANGES:] = [f"… ({len(changed)} params)"]
        return ", ".join(changed + words)

    def cells(self) -> list[CellState]:
        """The state of each cell, in the config's order: whether the headers of its set have it, and whether what is
        behind it is that of the config."""
        states: dict[Cell, CellState] = {}
        sound: set[Path] = set()
        for home in self.sets.all:
            try:
                states |= self._of_set(home)
                if any(states[cell].state == DONE for cell in home.cells):
                    require_sound(Path(home.scores(self.root)), self.root, sound)
            except InputError as error:  # a damaged header, or scores that print a wrong number
                broken = [Reason("score", STALE, f"{error.place}: {error.problem}")]
                for cell in home.cells:
                    if cell not in states or states[cell].state == DONE:
                        states[cell] = CellState(cell, STALE, broken)
        return [states[cell] for cell in self.sets.home]

    def new_cells(self, job: Job) -> Sequence[Cell]:
        """Of a set that has to run, the cells that are not done as headers say: all others are in the store."""
        if "set" not in job.wildcards:
            return job.cells
        try:
            return [cell for cell in job.cells if self._of_set(self.sets.home[cell])[cell].state != DONE]
        except InputError:  # a damaged header
            return job.cells

    @functools.cache  # noqa: B019 - an audit lives as long as its process
    def _of_set(self, home: CellSet) -> dict[Cell, CellState]:
        """The states of a set's cells, by the jobs that have to run and by headers alone."""
        jobs = self.jobs.behind(filter(None, [self.jobs.by_output.get(home.scores(self.root))]))
        lacking = self._lacking(home)
        states: dict[Cell, CellState] = {}
        for testset in home.testsets:
            behind = [job for job in jobs if job.wildcards.get("testset", testset) == testset]
            planned = [reason for job in behind for reason in self.reasons[job]]
            cells = [cell for cell in home.cells if cell.testset == testset]
            states |= self._states(home, cells, planned, lacking)
        return states

    def _states(
        self, home: CellSet, cells: Sequence[Cell], planned: Sequence[Reason], lacking: Mapping[Cell, Reason]
    ) -> dict[Cell, CellState]:
        """Of a set's cells of one test set; ``planned`` are the reasons of the jobs behind them, failures first."""
        # What exists is stale if its remake failed or a param changed. Of scores, other translations may only be more.
        changed = [one for one in planned if one.state == STALE and (one.log or one.key not in ("", REMADE))]
        for rule, _, change in changes(self.experiment, self.root, home, cells[0].testset):
            changed.append(Reason(rule, STALE, told(change), change.key))
        missing = sorted((one for one in planned if one.state == MISSING), key=lambda one: not one.log)
        states: dict[Cell, CellState] = {}
        for cell in cells:
            reasons = [one for one in dict.fromkeys(changed) if concerns(self.experiment, one.key, cell)]
            # Why an input is another one says more than that it is.
            reasons = [one for one in reasons if not one.key.startswith(MADE_FROM)] or reasons
            state = STALE if reasons else DONE
            if cell in lacking:
                behind = [one for one in reasons if one.rule not in ("translate", "score")]
                state, reasons = MISSING, [*missing, lacking[cell]][:1] + behind
            states[cell] = CellState(cell, state, reasons)
        return states

    def _lacking(self, home: CellSet) -> dict[Cell, Reason]:
        """The cells that the files of a set do not have. Translations may be purged once they are scored."""
        translations, scores = Path(home.translations(self.root)), Path(home.scores(self.root))
        lacking: dict[Cell, Reason] = {}
        for rule, path, needed in (("translate", translations, ()), ("score", scores, (scores,))):
            is_there = all(file.is_file() for file in (record_path(path), *needed))
            systems = entries(record_path(path)) if is_there else {}
            text = "not among the cells of its set yet" if systems else "new"
            for cell in home.cells:
                if system_of(cell) not in systems:
                    lacking.setdefault(cell, Reason(rule, MISSING, text))
        return lacking


def _reasons(job: Job) -> list[Reason]:
    state = STALE if all(Path(path).exists() for path in job.outputs) else MISSING
    log, outputs = Path(job.log), filter(Path.is_file, map(Path, job.outputs))
    reasons: list[Reason] = []
    # The log of the last attempt is newer than outputs.
    last = max((path.stat().st_mtime for path in outputs), default=0.0)
    if log.is_file() and log.stat().st_mtime >= last and (error := cause_of(log)):
        reasons.append(Reason(job.rule, state, error, log=job.log))
    if state == STALE and (changed := _changed_params(job)):
        return reasons + [Reason(job.rule, state, told(change), change.key) for change in changed]
    return reasons + [Reason(job.rule, state, word) for word in brief(job.reason)]


def _changed_params(job: Job) -> list[Difference]:
    """The params that the header of a job has otherwise than the config."""
    try:
        changed = [change for _, _, change in changed_params({job.outputs[0]: job.spec})]
    except InputError:  # the cells behind it tell
        return []
    # What is made from something more or less has other params of its own, too.
    return [one for one in changed if not (one.key.startswith(MADE_FROM) and ABSENT in (one.before, one.after))]
