"""The audit knows jobs without Snakemake's graph: here they are compared with what Snakemake says of them."""

from __future__ import annotations

import re

import pytest
from workspace import Workspace

from entropy_valley import files
from entropy_valley.experiment import load_files
from entropy_valley.experiment.result import RULES
from entropy_valley.reporting import against

BASE = ["config/studies.yaml", "config.yaml"]


@pytest.fixture
def workspace(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def authors(tmp_path):
    """As the paper's authors ran it, with a data set that is downloaded and, for German, files of the user's own."""
    small = {"matrix": {"backbones": ["llada-8b"], "seeds": [1]}, "tables": {"studies": ["negative_order"]}}
    own = {"name": "json_lines", "folder": "given", "files": {"de-en": {"train": "train.jsonl", "dev": "dev.jsonl"}}}
    over = {**small, "sources": {"own": own}, "directions": {"en-de": {"train": "own"}}}
    return Workspace(tmp_path, "config/authors.yaml", over)


def planned(text):
    """By rule and wildcards: wildcards, log, digest of the params and first output, as a dry run prints them."""
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)(?:Shell command: (.*)\n)?", text, flags=re.MULTILINE)
    for rule, body, command in jobs:
        if rule in against.ORDER:
            fields = dict(re.findall(r"^    (\w+): (.*)$", body, flags=re.MULTILINE))
            wildcards = dict(pair.split("=") for pair in fields.get("wildcards", "").split(", ") if pair)
            params = re.search(r"/params/(\w+)\.json", command)
            output = fields["output"].split(", ")[0].removesuffix(" (update)")
            yield (rule, *wildcards.values()), (wildcards, fields["log"], params and params[1], output)


@pytest.mark.parametrize("workspace", ["paper", "finished", "adopted", "authors"], indirect=True)
def test_every_job_is_the_one_that_snakemake_plans(workspace, monkeypatch):
    monkeypatch.chdir(workspace.folder)
    there = dict(planned(workspace.dry_run("--printshellcmds", "--forceall")))
    names = workspace.config_files()
    found = against.jobs(load_files(dict.fromkeys([*BASE, *names])))
    assert found.keys() == there.keys()
    for key, job in found.items():
        wildcards, log, params, output = there[key]
        assert (job.wildcards, job.log) == (wildcards, log)
        assert output in (job.folder, f"{job.folder}/{job.files[0]}")
        if job.rule in RULES:  # params of tables have the paths of cells, too
            assert params == (files.text_digest(files.canonical(job.spec)) if job.spec else None), key
