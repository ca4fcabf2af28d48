"""Runs of the smallest demo: killed or stopped at any moment, two on one folder of results, in a read-only folder."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from chain import results
from faults import give_up_privileges
from trial import TRIALS
from workspace import ROOT, Workspace

pytestmark = [pytest.mark.faults, pytest.mark.slow]
CONFIGS = ("config/demo.yaml", "config/smallest.yaml")
TARGET = "results/smallest/tables/main.tex"
OPTIONS = ("--cores", "2", TARGET)
KILLS = 2 * max(1, TRIALS // 60)
GUIDE = ROOT / "docs/running.md"


class Run(Workspace):
    """The workflow in a folder."""

    def __init__(self, folder):
        super().__init__(folder, *CONFIGS, real=True)

    def kill_after(self, process, seconds):
        """Snakemake and its jobs at once, as a lost machine does; whether it was still running."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=seconds)
            return False
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True

    def start(self, *arguments, before=lambda: None):
        """Snakemake in a session of its own; ``before`` is called in its process."""
        command = [sys.executable, "-m", "snakemake", *arguments, "--configfile", *CONFIGS]
        said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "preexec_fn": before}
        return subprocess.Popen(command, cwd=self.folder, env=self._variables(None), start_new_session=True, **said)

    def results(self):
        return results(self.folder / "results/smallest")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    run, began = Run(tmp_path_factory.mktemp("undisturbed")), time.monotonic()
    run.run(*OPTIONS)
    run.seconds = time.monotonic() - began
    return run


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run that the tests kill, one after the other."""
    return Run(tmp_path_factory.mktemp("killed"))


@pytest.mark.parametrize("number", range(KILLS))
def test_killed_with_all_jobs(undisturbed, killed, chance, number):
    """What is there is what an undisturbed run makes; nothing is begun before the lock is taken away."""
    process = killed.start(*OPTIONS)
    if killed.kill_after(process, chance.uniform(3, undisturbed.seconds / 2)):
        if number == 0:
            assert "--unlock" in killed.run(*OPTIONS, fails=True)
        killed.run("--unlock", TARGET)
    made = undisturbed.results()
    for name, content in killed.results().items():
        assert content == made[name], name


def test_after_all_kills_the_run_ends_as_an_undisturbed_one(undisturbed, killed):
    killed.run(*OPTIONS)
    assert killed.results() == undisturbed.results()
    assert "Nothing to be done" in killed.run(*OPTIONS)


# Stands for every script: writes what its job depends on, so that two runs can be compared, and takes a moment for it.
SLOW = """
import time
from pathlib import Path

for path in snakemake.output:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        for text in snakemake.params.spec, path:
            file.write(text)
            file.flush()
            time.sleep(0.05)
"""
FOUR_RUNS = {"matrix": {"directions": ["en-zh", "en-de"], "seeds": [1, 2]}}
OTHERWISE = {"decoding": {"precision": "bfloat16"}}  # all sets are translated anew


def test_a_run_that_is_stopped_goes_on_with_what_is_missing(tmp_path, chance):
    """By Ctrl-C, and by a kill while it replaces results. In the end each is as an undisturbed run makes it."""
    stopped, target = Workspace(tmp_path, *CONFIGS, FOUR_RUNS), TARGET
    for script in (tmp_path / "workflow/scripts").glob("*.py"):
        script.write_text(SLOW)
    undisturbed = stopped.copied(tmp_path / "undisturbed")
    undisturbed.run("--cores", "2", target)
    for end, over in ((signal.SIGINT, None), (signal.SIGKILL, OTHERWISE)):
        before = stopped.planned(target, over=over).keys()
        ended = stop(stopped.start("--cores", "2", target, over=over), end, chance.randint(1, len(before) // 3))
        stopped.run("--unlock", target)
        planned = stopped.planned(target, over=over).keys()
        assert planned <= before - ended
        assert len(before - ended - planned) <= 2  # those that ended in the moment of the signal
    stopped.run("--cores", "2", target)
    assert contents(stopped) == contents(undisturbed)
    assert not stopped.planned(target)


def stop(process, end, count):
    """Send a signal to Snakemake and its jobs when so many of these have ended; their names."""
    ended = set()
    while len(ended) < count and (line := process.stdout.readline()):
        ended |= ended_in(line)
    os.killpg(process.pid, end)
    return ended | ended_in(process.communicate()[0])


def ended_in(text):
    """The jobs that have ended by what a run prints, as a plan names them."""
    return {name.replace(".seed", ".").replace("/", " ", 1) for name in re.findall(r" done: (.*) \(", text)}


def contents(workspace):
    """The text of each result."""
    root = workspace.folder / "results"
    of_runs = ("logs", "benchmarks", "work")
    files = {path.relative_to(root): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in files.items() if not {*name.parts} & {*of_runs}}


def test_two_runs_from_two_checkouts_make_one_result(undisturbed, tmp_path):
    """They share the results folder, and no lock of Snakemake. All that follows the adapter is to be made."""
    runs = [Run(tmp_path / name) for name in ("shared", "other") if not (tmp_path / name).mkdir()]
    for run in runs:
        shutil.copytree(undisturbed.folder / ".snakemake", run.folder / ".snakemake", symlinks=True)
    results = runs[0].folder / "results"
    shutil.copytree(undisturbed.folder / "results", results, symlinks=True)
    for path in ("tables", "en-zh/llada-tiny/seed1/matrix", "store"):
        shutil.rmtree(results / "smallest" / path)
    (runs[1].folder / "results").symlink_to(results)
    processes = [run.start(*OPTIONS) for run in runs]
    said = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert runs[0].results() == undisturbed.results()


def test_a_read_only_results_folder_is_named(undisturbed, tmp_path):
    run = Run(tmp_path)
    shutil.copytree(undisturbed.folder / "results", run.folder / "results", symlinks=True)
    before, testset = run.results(), "results/smallest/corpus/en-zh/test/grammar.jsonl"
    for folder in (run.folder / "results").rglob("*"):
        if folder.is_dir():
            folder.chmod(0o555)
    process = run.start("--cores", "1", "--force", testset, before=give_up_privileges)
    said, _ = process.communicate()
    refused = "results/smallest: nothing can be written there: Permission denied."
    assert process.returncode != 0 and refused in said, said
    assert run.results() == before


def test_results_from_the_future_stop_the_run_until_they_are_touched(undisturbed, tmp_path):
    """As after a clock that was wrong is put right; docs/running.md has the command."""
    run = Run(tmp_path)
    shutil.copytree(undisturbed.folder / "results", run.folder / "results", symlinks=True)
    shutil.copytree(undisturbed.folder / ".snakemake", run.folder / ".snakemake", symlinks=True)
    tomorrow = time.time() + 86_400
    for path in (run.folder / "results/smallest/corpus").rglob("*.jsonl"):
        os.utime(path, (tomorrow, tomorrow))
    assert "Nothing to be done" in run.run(*OPTIONS)  # their content is as it was
    scores = "results/smallest/en-zh/llada-tiny/seed1/matrix/scores.jsonl"
    (run.folder / scores).unlink()
    said = run.run(*OPTIONS, scores, fails=True)
    assert "has older modification time" in said and "grammar.jsonl" in said
    (command,) = re.findall(r"`(find results .*?)`", GUIDE.read_text())
    subprocess.run(command, shell=True, cwd=run.folder, check=True)
    run.run(*OPTIONS, scores)
    assert run.results() == undisturbed.results()
