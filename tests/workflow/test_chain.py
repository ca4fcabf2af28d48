"""The audit knows jobs without Snakemake's graph: here they are compared with what Snakemake says of them."""

from __future__ import annotations

import re

import pytest

from entropy_valley import files
from entropy_valley.experiment import load_files
from entropy_valley.experiment.audit import Audit
from entropy_valley.experiment.chain import RULES
from entropy_valley.experiment.matrix import all_cells

BASE = ["config/studies.yaml", "config.yaml"]


@pytest.fixture
def workspace(request):
    return request.getfixturevalue(request.param)


def planned(text):
    """By rule and wildcards: wildcards, log, digest of the params and first output, as a dry run prints them."""
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)(?:Shell command: (.*)\n)?", text, flags=re.MULTILINE)
    for rule, body, command in jobs:
        if rule in RULES:
            fields = dict(re.findall(r"^    (\w+): (.*)$", body, flags=re.MULTILINE))
            wildcards = dict(pair.split("=") for pair in fields.get("wildcards", "").split(", ") if pair)
            params = re.search(r"/params/(\w+)\.json", command)
            output = fields["output"].split(", ")[0].removesuffix(" (update)")
            yield (rule, *wildcards.values()), (wildcards, fields["log"], params and params[1], output)


@pytest.mark.parametrize("workspace", ["paper", "finished", "adopted"], indirect=True)
def test_every_job_of_a_cell_is_the_one_that_snakemake_plans(workspace, monkeypatch):
    monkeypatch.chdir(workspace.folder)
    jobs = dict(planned(workspace.dry_run("--printshellcmds", "--forceall")))
    names = workspace._options(None)[1:]
    experiment = load_files(dict.fromkeys([*BASE, *names]))
    found = Audit(experiment).results(all_cells(experiment))
    assert {one.result.key for one in found} == jobs.keys()
    for result in (one.result for one in found):
        wildcards, log, params, output = jobs[result.key]
        assert (result.wildcards, result.log) == (wildcards, log)
        assert params == (files.text_digest(files.canonical(result.spec)) if result.spec else None), result.key
        assert output in (result.folder, f"{result.folder}/{result.files[0]}")
