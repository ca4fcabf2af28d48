"""The inventory knows jobs without Snakemake: here they are compared with what Snakemake says of them."""

from __future__ import annotations

import re

import pytest
from workspace import Workspace

from entropy_valley.config import base_files, load_files
from entropy_valley.runs.inventory import Inventory


@pytest.fixture
def authors(tmp_path):
    """As the paper's authors ran it, with a data set that is downloaded and, for German, files of the user's own."""
    small = {"matrix": {"backbones": ["llada-8b"], "seeds": [1]}, "tables": {"studies": ["negative_order"]}}
    own = {"name": "json_lines", "folder": "given", "files": {"de-en": {"train": "train.jsonl", "dev": "dev.jsonl"}}}
    over = {**small, "sources": {"own": own}, "directions": {"en-de": {"train": "own"}}}
    return Workspace(tmp_path, "config/authors.yaml", over)


@pytest.fixture
def workspace(request):
    return request.getfixturevalue(request.param)


def planned(text):
    """By first output: rule, wildcards and all inputs of each job, as a dry run prints them."""
    for rule, body in re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)", text, flags=re.MULTILINE):
        fields = dict(re.findall(r"^    (\w+): (.*)$", body, flags=re.MULTILINE))
        wildcards = dict(pair.split("=") for pair in fields.get("wildcards", "").split(", ") if pair)
        if "output" in fields:
            yield fields["output"].split(", ")[0], (rule, wildcards, set(fields.get("input", "").split(", ")))


@pytest.mark.parametrize("workspace", ["paper", "finished", "adopted", "authors"], indirect=True)
def test_every_job_is_the_one_that_snakemake_plans(workspace, monkeypatch):
    monkeypatch.chdir(workspace.folder)
    there = dict(planned(workspace.dry_run("--printshellcmds", "--forceall")))
    names = workspace.config_files()
    inventory = Inventory(load_files(dict.fromkeys([*base_files(), *names])))
    jobs = inventory.all()
    assert len(jobs) == len(there)
    for output, (rule, wildcards, inputs) in there.items():
        job = inventory.at(output)
        assert job in jobs and (job.rule, dict(job.wildcards)) == (rule, wildcards), output
        assert set(job.inputs) <= inputs, output
