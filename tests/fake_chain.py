"""A folder of results as the workflow leaves it, with records and logs, but with made-up content."""

from __future__ import annotations

import json
from pathlib import Path

from entropy_valley import files, provenance
from entropy_valley.config import Experiment
from entropy_valley.data import build
from entropy_valley.demo.grammar import SOURCES
from entropy_valley.results import system_of
from entropy_valley.runs.audit import COPIES
from entropy_valley.runs.inventory import Inventory, Job

SPLITS = {"corpus": ("train", "dev"), "testset": ("test",)}  # that a rule reads from a user's own files


def write(experiment: Experiment) -> Inventory:
    """Write what every job of a config makes; return these jobs."""
    inventory = Inventory(experiment)
    for job in inventory.all():
        make(job)
        files.write_text(f"{inventory.root}/logs/{job.name}.log", "100 %\n")
    return inventory


def make(job: Job, content: str = "") -> None:
    """Write what one job makes, with its record."""
    outputs = [path for path in job.outputs if path != str(provenance.record_path(job.outputs[0]))]
    if job.rule in COPIES:
        return _write(outputs, content)
    params = json.loads(job.spec)
    own = build.own_files(params, *SPLITS[job.rule], kinds=SOURCES) if job.rule in SPLITS else []
    with provenance.made(job.rule, params, [*job.inputs, *own], outputs) as record:
        _write(outputs, content)
        if job.cells:
            record.facts["cells"] = [system_of(cell)._asdict() for cell in job.cells]


def _write(paths: list[str], content: str) -> None:
    for path in paths:
        files.write_text(Path(path), f"{path} {content}\n")
