"""The state of every cell: done, stale, damaged, failed or missing, and why.

A cell is as its whole chain is: corpus, adapter, canvases, translations, scores. By which settings a result was made,
the record beside it says (:mod:`entropy_valley.provenance`); Snakemake's graph is not needed.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from entropy_valley.experiment.chain import Chain
from entropy_valley.experiment.findings import DAMAGED, DONE, FAILED, MISSING, STALE, Finding, Findings
from entropy_valley.experiment.matrix import Cell, all_cells
from entropy_valley.experiment.result import Result, collect
from entropy_valley.experiment.schema import Experiment
from entropy_valley.experiment.written import Written


@dataclass(frozen=True)
class CellState:
    """The state of a cell, and the findings that are the reason, in the chain's order. ``recorded`` is false where the
    settings of some of its own results are not known."""

    cell: Cell
    state: str
    reasons: tuple[Finding, ...] = ()
    recorded: bool = True


class Audit:
    """What is there of a config's cells.

    Files are compared with the digests in their records; a file that has not changed since the last audit is not read
    again, see :class:`.digest_cache.Digests`.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.written = Written(experiment.results)
        self.experiment, self.chain, self.findings = experiment, Chain(experiment), Findings(self.written)
        self._troubled: dict[Result, dict[Result, None]] = {}
        self._failures: dict[Result, Finding | None] = {}

    def cells(self) -> list[CellState]:
        """The state of each cell that is scored, in the config's order."""
        with _without_collector():
            return [self.cell(cell) for cell in all_cells(self.experiment)]

    def cell(self, cell: Cell) -> CellState:
        scores = self.chain.scores(cell)
        troubled = [self.findings.of(result) for result in self._troubles(scores)]
        lacking = self.findings.of(scores).state == MISSING
        # An adapter or a corpus may have been moved away from finished results.
        reasons = [one for one in troubled if lacking or one.state != MISSING or one.result.own]
        if not reasons:
            return CellState(cell, DONE, recorded=self._recorded(scores))
        if failed := dict.fromkeys(filter(None, (self._failure(one.result) for one in reasons))):
            return CellState(cell, FAILED, tuple(failed))
        if lacking:
            return CellState(cell, MISSING, tuple(one for one in reasons if one.state == MISSING)[:1])
        reasons = [_as_partner(one) for one in reasons]
        state = DAMAGED if any(one.state == DAMAGED for one in reasons) else STALE
        return CellState(cell, state, tuple(one for one in reasons if one.state == state), self._recorded(scores))

    def finding(self, result: Result) -> Finding:
        """The state of a result that some cell is made from."""
        found = self.findings.of(result)
        failed = self._failure(result) if found.state != DONE else None
        return failed if failed and failed.result is result else found

    def results(self, cells: Iterable[Cell]) -> list[Finding]:
        """The state of every result that cells are made from, each once, those that others need first."""
        return [self.finding(result) for result in self.made_from(cells)]

    def made_from(self, cells: Iterable[Cell]) -> dict[Result, None]:
        """The results that cells are made from, each once, those that others need first."""
        made: dict[Result, None] = {}
        for cell in cells:
            collect(self.chain.scores(cell), made)
        return made

    def _troubles(self, result: Result) -> dict[Result, None]:
        """What is not done of a result's chain. Where a result is there, what it lacks of its chain is no trouble
        further down."""
        if result not in self._troubled:
            found: dict[Result, None] = {}
            for need in result.needs:
                found |= self._troubles(need)
            there = self.findings.of(result).state != MISSING
            kept = {one: None for one in found if not there or one.own or self.findings.of(one).state != MISSING}
            own = {} if self.findings.of(result).state == DONE else {result: None}
            self._troubled[result] = {**kept, **own}
        return self._troubled[result]

    def _failure(self, result: Result) -> Finding | None:
        if result not in self._failures:
            self._failures[result] = self.findings.failure(result)
        return self._failures[result]

    def _recorded(self, result: Result) -> bool:
        own = all(self._recorded(need) for need in result.needs if need.own)
        return own and self.findings.of(result).recorded


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """All small objects of an audit are kept, so to look for garbage among them is in vain: a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _as_partner(found: Finding) -> Finding:
    """A finding of a finished cell: what is not there of it has been lost."""
    if found.state != MISSING:
        return found
    return Finding(found.result, DAMAGED, f"no {found.result.files[0]}", recorded=found.recorded)
