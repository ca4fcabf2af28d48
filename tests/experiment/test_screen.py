"""What a run of many jobs prints, and which workflow profiles there are."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from snakemake_interface_logger_plugins.common import LogEvent

from entropy_valley.errors import InputError
from entropy_valley.experiment import profile
from entropy_valley.experiment.screen import Progress

ROOT = Path(__file__).parents[2]


def record(event, **said):
    return SimpleNamespace(event=event, levelno=logging.INFO, msg=None, **said)


def run(jobs, seconds=0.0):
    """What of a run of so many jobs is let through; each takes ``seconds``."""
    clock, logs = [0.0], []

    def say(done, total):
        said.append(progress.filter(record(LogEvent.PROGRESS, done=done, total=total, due=True)))

    progress = Progress(lambda: jobs, lambda: logs.append(True), say, lambda: clock[0])
    said = [progress.filter(record(LogEvent.RUN_INFO))]
    for job in range(jobs):
        wildcards = {"direction": "en-zh", "session": "x", "shard": "0of1"}
        said.append(progress.filter(record(LogEvent.JOB_INFO, jobid=job, rule_name="train", wildcards=wildcards)))
        progress.look()
        assert progress.running() == ("" if not logs else ", now: train en-zh")
        clock[0] += seconds
        said.append(progress.filter(record(LogEvent.JOB_FINISHED, job_id=job)))
        said.append(progress.filter(record(LogEvent.PROGRESS, done=job + 1, total=jobs)))
    return said, logs, progress


def test_of_many_jobs_only_how_far_they_are():
    said, logs, progress = run(1000)
    assert logs and sum(said) == 1 + 20
    assert said[-1] and progress.running() == ""


def test_of_a_few_jobs_all_is_said():
    said, logs, _ = run(12)
    assert all(said) and not logs


def test_long_jobs_are_told_of_more_often():
    said, *_ = run(1000, seconds=60)
    assert sum(said) == pytest.approx(1 + 500, abs=25)


def test_how_far_they_are_is_said_while_none_ends():
    clock, said = [0.0], []
    progress = Progress(
        lambda: 40, lambda: None, lambda *done: said.append((done, progress.running())), lambda: clock[0]
    )
    progress.filter(record(LogEvent.RUN_INFO))
    for job, name in enumerate(("llada", "dream", "llama3")):
        progress.filter(record(LogEvent.JOB_INFO, jobid=job, rule_name="pretrain", wildcards={"backbone": name}))
    progress.filter(record(LogEvent.JOB_FINISHED, job_id=0))
    assert not progress.filter(record(LogEvent.PROGRESS, done=1, total=40))
    for clock[0] in range(241):
        progress.look()
    running = ", now: pretrain dream ({0} min), pretrain llama3 ({0} min)"
    assert said == [((1, 40), running.format(2)), ((1, 40), running.format(4))]


def test_errors_and_warnings_always_pass():
    *_, progress = run(100)
    progress.filter(record(LogEvent.JOB_INFO, jobid=7, rule_name="train", wildcards={}))
    assert progress.filter(record(LogEvent.JOB_ERROR, jobid=7)) and progress.running() == ""
    assert progress.filter(SimpleNamespace(levelno=logging.WARNING, msg="Select jobs"))
    assert not progress.filter(SimpleNamespace(levelno=logging.INFO, msg="Select jobs to execute..."))


def test_a_mistyped_profile_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for known in (["-n"], ["--workflow-profile", "demo", "-n"], ["--workflow-profile=none"]):
        profile.require(known, ROOT)
    with pytest.raises(InputError, match=r"dmeo: no such profile\. Did you mean demo\? .*default, demo"):
        profile.require(["-n", "--workflow-profile", "dmeo"], ROOT)


@pytest.mark.parametrize("path", sorted(ROOT.glob("profiles/*/config.yaml")), ids=lambda path: path.parent.name)
def test_every_profile_shows_the_log_of_a_job_that_fails(path):
    """What jobs say is kept from the terminal only then."""
    assert yaml.safe_load(path.read_text())["show-failed-logs"] is True
