"""Which jobs of a config are left to run, by what is there of their results."""

from __future__ import annotations

import os
from collections.abc import Iterable

from entropy_valley.experiment.findings import DONE, FAILED, MISSING, Finding, Findings
from entropy_valley.experiment.result import RULES, Result


def remaining(findings: Findings, jobs: Iterable[Result], targets: Iterable[Result]) -> dict[Result, Finding]:
    """The jobs that run so that ``targets`` are made, each with the state of its result: DONE where only what it is
    made from is made again.

    ``jobs`` are all that targets need, those that others need first. A result that only finished ones need may be
    missing: it is not made for its own sake.
    """
    found = {job: _state(findings, job) for job in jobs}
    changed: dict[Result, bool] = {}
    for job, one in found.items():
        changed[job] = one.state not in (DONE, MISSING, FAILED) or any(changed[need] for need in job.needs)
    wanted: dict[Result, None] = {}
    asked = [job for job in targets if changed[job] or found[job].state != DONE]
    while asked:
        job = asked.pop()
        if job not in wanted:
            wanted[job] = None
            asked += [need for need in job.needs if changed[need] or found[need].state != DONE]
    return {job: one for job, one in found.items() if job in wanted}


def _state(findings: Findings, job: Result) -> Finding:
    """Of a table or figure, only whether it is there: its params have more than can be known here."""
    if job.rule in RULES:
        return findings.of(job)
    return Finding(job, DONE if all(map(os.path.exists, job.paths)) else MISSING, "not made yet")
