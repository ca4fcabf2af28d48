"""Runs of the smallest demo: killed at any moment, and two on one folder of results."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

import pytest
from chain import TRIALS, results
from workspace import Workspace

pytestmark = [pytest.mark.faults, pytest.mark.slow]
CONFIGS = ("config/demo.yaml", "config/smallest.yaml")
TARGET = "results/smallest/tables/main.tex"
OPTIONS = ("--cores", "2", TARGET)
KILLS = 2 * max(1, TRIALS // 60)


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
