"""A config that is edited while jobs wait: a job of a cluster, a Snakemake of its own, refuses it."""

from __future__ import annotations

import json

import pytest

TARGET = "results/corpus/en-de/corpus.json"
KEPT = "#!/bin/bash\ncp $ENTROPY_VALLEY_RUN run.json\ntouch results/corpus/en-de/{train,dev}.jsonl " + TARGET
JOB = ("--mode", "subprocess", "--no-hooks", "--nolock", "--force", "--cores", "1", TARGET)


@pytest.fixture
def submitted(paper):
    """A run; what it hands down to its jobs, and what they find there."""
    (paper.folder / "bin" / "python").write_text(KEPT)
    paper.run("--cores", "1", TARGET)
    description = paper.folder / "run.json"
    return {"ENTROPY_VALLEY_RUN": str(description)}, json.loads(description.read_text())


def test_a_job_refuses_a_config_that_was_edited_since(paper, submitted):
    environment, description = submitted
    assert description["targets"] == [TARGET]
    assert not list((paper.folder / "results/work/runs").iterdir())  # the run has ended
    paper.run(*JOB, environment=environment)
    config = paper.folder / "config.yaml"
    config.write_text(config.read_text().replace("en-zh: [0.70, 0.75,", "en-zh: [0.65, 0.75,"))
    said = paper.run(*JOB, environment=environment, fails=True)
    assert "length_methods.ev.ratios.en-zh: [0.7,0.75,0.8,0.85,0.9] → [0.65,0.75,0.8,0.85,0.9]" in said
    assert "Traceback" not in said
