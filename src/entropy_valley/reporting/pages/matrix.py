"""The matrix as a page: the state of every cell as a colour and a sign; on a click why, its logs and its cost."""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley.analysis.job_costs import Cost, job_costs
from entropy_valley.experiment.audit import Audit, CellState
from entropy_valley.experiment.findings import FAILED, STATES, Finding
from entropy_valley.experiment.result import Result, collect
from entropy_valley.reporting import labels, pages

Job = Result | str  # a string: jobs that do the work of many results together, by how their logs begin
NOTHING = Cost(0, 0, 0, 0)


def write(path: str | Path, audit: Audit, states: Sequence[CellState], words: Callable[[Finding], str]) -> None:
    """Write the page of these cells; ``words`` says why a result is as it is."""
    root = audit.experiment.results
    chains = [_chain(audit, one) for one in states]
    jobs = Counter(itertools.chain.from_iterable(chains))  # with the number of cells that need each
    words = functools.cache(words)
    reasons = [[_reason(reason, words) for reason in one.reasons] for one in states]
    known = {reason: place for place, reason in enumerate(dict.fromkeys(itertools.chain.from_iterable(reasons)))}
    places = {job: place for place, job in enumerate(jobs)}
    methods = {one.cell.method: labels.method(one.cell.method) for one in states}
    data = {
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "results": root,
        "way": os.path.relpath(root, Path(path).parent),
        "states": STATES,
        "labels": {
            "method": {name: method.label for name, method in methods.items()},
            "short": {name: method.short for name, method in methods.items()},
            "order": labels.ORDERS,
        },
        "cells": [
            [*_coordinates(one), one.state, [places[job] for job in chain], [known[reason] for reason in why]]
            for one, chain, why in zip(states, chains, reasons, strict=True)
        ],
        "jobs": list(_rows(audit, jobs, job_costs(Path(root, "benchmarks")))),
        "reasons": list(known),
    }
    pages.write(path, "matrix", f"Matrix of {root}", data)


def _coordinates(one: CellState) -> list[str | int]:
    cell, run = one.cell, one.cell.run
    place = [run.backbone, run.direction, cell.testset, run.name.removeprefix("seed")]
    return [*place, cell.method, cell.order, cell.steps]


def _chain(audit: Audit, one: CellState) -> list[Job]:
    """All that a cell is made from, in the order of the work."""
    found: dict[Result, None] = {}
    collect(audit.chain.scores(one.cell), found)
    return list(dict.fromkeys(job for result in found for job in (result.shared, result) if job))


def _reason(reason: Finding, words: Callable[[Finding], str]) -> tuple[str, str, str, str]:
    return (reason.state, reason.result.rule, words(reason), reason.result.log if reason.state == FAILED else "")


def _rows(audit: Audit, jobs: Mapping[Job, int], costs: Mapping[str, Cost]) -> Iterator[list[Any]]:
    """Of each job its rule, state, log, seconds, GPU-seconds, attempts, failures, and how many cells share it."""
    logs = f"{audit.experiment.results}/logs/"
    stages = defaultdict(list)
    for name in costs:
        stages[name.split("/")[0]].append(name)
    for job, cells in jobs.items():
        if isinstance(job, Result):
            rule, state, log = job.rule, audit.finding(job).state, job.log
            parts = [costs.get(log.removeprefix(logs).removesuffix(".log"), NOTHING)]
        else:
            beginning = job.removeprefix(logs)
            rule, state, log = beginning.split("/")[0], "", f"{job}*"
            parts = [costs[name] for name in stages[rule] if name.startswith(beginning)]
        hours, gpu_hours, attempts, failed = map(sum, zip(NOTHING, *parts, strict=True))
        yield [rule, state, log, round(3600 * hours, 1), round(3600 * gpu_hours, 1), attempts, failed, cells]
