"""What a failed or killed job leaves behind, and what runs next: on a Snakefile of two rules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import forked_snakemake
import pytest
from workspace import ROOT

# The first rule writes its param whole or not at all, as the scripts do. `how` is what happens to it before.
SNAKEFILE = """
from entropy_valley.backbone import adapters, checkpoint

include: "%s"

rule second:
    default_target: True
    input: "out/first/facts.json"
    output: update("out/second.txt")
    shell: "cp {input} {output}"

rule first:
    output: update("out/first/facts.json")
    params: value=config["value"]
    shell: "{config[how]} && echo {params.value} > out/new && mv out/new {output}"
"""
PROFILE = ["--cores", "1", "--rerun-incomplete", "--rerun-triggers", "mtime", "input", "params"]


class Small:
    """The Snakefile of two rules in a folder."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "Snakefile").write_text(SNAKEFILE % (ROOT / "workflow/rules/outputs.smk"))

    def run(self, value, how="true", *more):
        status, said = forked_snakemake.run(self.folder, self.options(value, how, *more), os.environ["PATH"])
        return status, said

    def options(self, value, how, *more):
        return [*PROFILE, *more, "--config", f"value={value}", f"how={how}"]

    def plans(self, value):
        _, said = self.run(value, "true", "--dry-run")
        return {rule for rule in ("first", "second") if f"rule {rule}:" in said}

    def kill(self, value):
        """Snakemake and its jobs, by a signal that none of them can handle, once the job runs."""
        how = "touch running && sleep 60"
        command = [sys.executable, "-m", "snakemake", *self.options(value, how)]
        with open(self.folder / "said.txt", "w") as file:
            process = subprocess.Popen(command, cwd=self.folder, stdout=file, stderr=file, start_new_session=True)
        while not (self.folder / "running").exists():
            assert process.poll() is None, (self.folder / "said.txt").read_text()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert self.run(value, "true", "--unlock")[0] == 0

    @property
    def result(self):
        return (self.folder / "out/second.txt").read_text().strip()


@pytest.fixture
def small(tmp_path):
    small = Small(tmp_path)
    assert small.run("old")[0] == 0
    return small


def test_a_failed_job_leaves_the_old_result_and_is_planned_again(small):
    assert small.run("new", "false")[0] == 1
    assert small.result == "old"
    assert small.plans("new") == {"first", "second"}
    assert small.run("new")[0] == 0
    assert small.result == "new"
    assert not small.plans("new")


def test_where_nothing_has_changed_but_that_a_job_failed_nothing_is_planned(small):
    assert small.run("new", "false")[0] == 1
    assert not small.plans("old")


def test_a_job_that_failed_after_writing_is_planned_again(small):
    assert small.run("new", "echo half > out/first/facts.json && false")[0] == 1
    assert small.plans("old") == {"first", "second"}


def test_a_killed_job_leaves_the_old_result_and_runs_again(small):
    small.kill("new")
    assert small.result == "old"
    assert small.plans("new") == {"first", "second"}
    assert small.run("new")[0] == 0
    assert small.result == "new"
    assert not small.plans("new")


def test_old_backups_are_neither_an_obstacle_nor_restored(small):
    backup = small.folder / ".snakemake/backups/out/first"
    backup.mkdir(parents=True)
    (backup / "facts.json").write_text("older\n")
    assert small.run("new", "false")[0] == 1
    assert (small.folder / "out/first/facts.json").read_text() == "old\n"
    assert small.run("new")[0] == 0
    assert small.result == "new"
