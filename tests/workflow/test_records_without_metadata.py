"""Results of which Snakemake knows nothing (`.snakemake` deleted, results copied): their records say what changed."""

from __future__ import annotations

import copy
import json
import re
import shutil
from pathlib import Path

import pytest
from workspace import by_rule

from entropy_valley import files
from entropy_valley.experiment import base_files, load_files, repair
from entropy_valley.experiment.chain import Chain
from entropy_valley.experiment.matrix import all_cells
from entropy_valley.provenance import record_path
from entropy_valley.reporting import reports

CHANGES = {
    "a grid": ({"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}}}, {"canvas", "decode", "score"}),
    "a rank": ({"training": {"lora": {"rank": 2}}}, {"train", "canvas", "decode", "score", "length_statistics"}),
    "a seed of the tests": ({"analysis": {"seed": 7}}, {"table", "figure"}),
}


@pytest.fixture(scope="module")
def copied(finished, tmp_path_factory):
    """The finished workspace with its records, with Snakemake's metadata and without."""
    folder = tmp_path_factory.mktemp("copied") / "whole"
    shutil.copytree(finished.folder, folder, symlinks=True)
    configs = [*finished.configs[:-1], *(f"over{place}.yaml" for place in range(2, len(finished.configs)))]
    experiment = load_files([*base_files(folder), *(folder / name for name in configs)], reports.problems)
    write_records(experiment, folder)
    lost = folder.with_name("lost")
    shutil.copytree(folder, lost, symlinks=True, ignore=shutil.ignore_patterns(".snakemake"))
    return [at(finished, place) for place in (folder, lost)]


def at(workspace, folder):
    moved = copy.copy(workspace)
    moved.folder = folder
    return moved


def write_records(experiment, folder):
    """The records of jobs that only touch their outputs: their rule and params."""
    chain, waiting = Chain(experiment), []
    waiting += map(chain.scores, all_cells(experiment))
    while waiting:
        result = waiting.pop()
        waiting += result.needs
        if result.spec:
            write(folder / result.folder / result.files[0], result.rule, result.spec)
    for name, report in reports.ready(experiment, reports.configured(experiment)).items():
        path = folder / experiment.results / f"{name}.{report.endings[0]}"
        write(path, path.parent.name, json.loads(report.params(experiment)))


def write(path, rule, params):
    assert path.is_file()
    outputs = {path.name: {"digest": files.file_digest(path), "bytes": 0}}
    files.write_json(record_path(path), {"rule": rule, "params": params, "inputs": {}, "outputs": outputs})


def test_nothing_is_planned_where_nothing_changed(copied):
    assert "Nothing to be done" in copied[1].dry_run()


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_plans_what_it_would_with_metadata(copied, change):
    over, rules = CHANGES[change]
    with_metadata, without = (workspace.planned(over=over) for workspace in copied)
    assert rules <= by_rule(with_metadata).keys()
    assert without == with_metadata


def test_the_reason_names_the_key_and_what_was_repaired_is_made_again(copied, monkeypatch):
    """Snakemake alone leaves it: all that is made from it is there."""
    monkeypatch.chdir(copied[1].folder)
    damaged = "results/demo/en-de/llada-tiny/seed2/grammar/oracle/med-T32/hypotheses.jsonl"
    repair.remove("results/demo", [repair.Damage(damaged, "decode", "cut", (damaged,))])
    said = copied[1].dry_run(over=CHANGES["a grid"][0])
    assert "ratios of en-zh: 0.55 0.62" in said
    assert re.search(r"^decode .*\n?.*missing output \(1\)", said, re.M), said
    Path(damaged).touch()
    repair.forget("results/demo")
    assert not Path("results/demo", repair.AGAIN).exists()
