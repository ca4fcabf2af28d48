"""The matrix as a page: the state of every cell as a colour and a sign; on a click why, its logs and its cost."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from entropy_valley.runs.audit import Audit, CellState
from entropy_valley.runs.jobs import Job
from entropy_valley.stats.job_costs import finished_seconds
from entropy_valley.tables import formats, render
from entropy_valley.tables.names import method_names


def write_matrix(
    path: Path, audit: Audit, states: Sequence[CellState], names: Sequence[str], planned: Mapping[Job, float]
) -> None:
    """Write the page of these cells; ``names`` are all states in order, ``planned`` seconds of jobs that are left."""
    root = audit.jobs.root
    chains = [audit.chain(one.cell) for one in states]
    shares = Counter(job for chain in chains for job in chain)  # how many cells need a job
    places = {job: place for place, job in enumerate(shares)}
    reasons = {
        reason: place for place, reason in enumerate(dict.fromkeys(why for one in states for why in one.reasons))
    }
    methods = {
        name: method_names(audit.jobs.experiment, name) for name in dict.fromkeys(one.cell.method for one in states)
    }
    benchmarks = Path(root, "benchmarks")
    took = {str(benchmarks / f"{name}.tsv"): seconds for name, seconds in finished_seconds(benchmarks).items()}
    data = {
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "results": root,
        "way": os.path.relpath(root, path.parent),
        "states": names,
        "labels": {
            "method": {name: method.label for name, method in methods.items()},
            "short": {name: method.short for name, method in methods.items()},
            "order": formats.ORDERS,
        },
        "cells": [
            [*_coordinates(one), one.state, [places[job] for job in chain], [reasons[why] for why in one.reasons]]
            for one, chain in zip(states, chains, strict=True)
        ],
        "jobs": [
            [job.rule, audit.job(job).state, job.log, took.get(job.benchmark), planned.get(job), cells]
            for job, cells in shares.items()
        ],
        "reasons": [[why.state, why.job.rule, why.text, why.log] for why in reasons],
    }
    render.write_page(path, "matrix", f"Matrix of {root}", data)


def _coordinates(one: CellState) -> list[str | int]:
    cell, run = one.cell, one.cell.run
    place = [run.backbone, run.direction, cell.testset, run.name.removeprefix("seed")]
    return [*place, cell.method, cell.order, cell.steps]
