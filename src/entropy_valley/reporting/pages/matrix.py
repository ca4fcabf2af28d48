"""The matrix as a page: the state of every cell as a colour and a sign; on a click why, its logs and its cost."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from entropy_valley.analysis.job_costs import finished_seconds
from entropy_valley.reporting import labels, pages

if TYPE_CHECKING:
    from entropy_valley.runs.audit import Audit, CellState


def write(path: Path, audit: Audit, states: Sequence[CellState], names: Sequence[str]) -> None:
    """Write the page of these cells; ``names`` are all states, in order."""
    root = audit.experiment.results
    chains = [audit.chain(one.cell) for one in states]
    shares = Counter(job for chain in chains for job in chain)  # how many cells need a job
    places = {job: place for place, job in enumerate(shares)}
    reasons = {
        reason: place for place, reason in enumerate(dict.fromkeys(why for one in states for why in one.reasons))
    }
    methods = {name: labels.method(name) for name in dict.fromkeys(one.cell.method for one in states)}
    took = finished_seconds(Path(root, "benchmarks"))
    data = {
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "results": root,
        "way": os.path.relpath(root, path.parent),
        "states": names,
        "labels": {
            "method": {name: method.label for name, method in methods.items()},
            "short": {name: method.short for name, method in methods.items()},
            "order": labels.ORDERS,
        },
        "cells": [
            [*_coordinates(one), one.state, [places[job] for job in chain], [reasons[why] for why in one.reasons]]
            for one, chain in zip(states, chains, strict=True)
        ],
        "jobs": [
            [job.rule, audit.job(job).state, audit.log(job), took.get(job.name), cells] for job, cells in shares.items()
        ],
        "reasons": [
            [why.state, why.job.rule, why.text, audit.log(why.job) if why.state == "failed" else ""] for why in reasons
        ],
    }
    pages.write(path, "matrix", f"Matrix of {root}", data)


def _coordinates(one: CellState) -> list[str | int]:
    cell, run = one.cell, one.cell.run
    place = [run.backbone, run.direction, cell.testset, run.name.removeprefix("seed")]
    return [*place, cell.method, cell.order, cell.steps]
