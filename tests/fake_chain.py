"""A folder of results as the workflow leaves it, with headers and logs, but with made-up content."""

import json
from pathlib import Path

from entropy_valley import files, results
from entropy_valley.data import build
from entropy_valley.experiment.demo.grammar import SOURCES
from entropy_valley.experiment.runs.jobs import Job, Jobs
from entropy_valley.results import system_of

SPLITS = {"corpus": ("train", "dev"), "testset": ("test",)}  # that a rule reads from a user's own files


def write(jobs: Jobs) -> Jobs:
    """Write what these jobs make; return them."""
    for job in jobs.all:
        make(job)
        files.write_text(job.log, "100 %\n")
    return jobs


def make(job: Job, content: str = "") -> None:
    """Write what one job makes, with its header if it has one."""
    outputs = [path for path in job.outputs if path != str(results.record_path(job.outputs[0]))]
    if len(outputs) == len(job.outputs):
        return _write(outputs, content)
    params = json.loads(job.spec)
    own = build.own_files(params, *SPLITS[job.rule], kinds=SOURCES) if job.rule in SPLITS else []
    with results.made(job.rule, params, dict.fromkeys([*job.inputs, *own]), outputs) as record:
        _write(outputs, content)
        if job.cells:
            record.facts["cells"] = [system_of(cell)._asdict() for cell in job.cells]


def _write(paths: list[str], content: str) -> None:
    for path in paths:
        files.write_text(Path(path), f"{path} {content}\n")
