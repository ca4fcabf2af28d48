"""The last words of a run that fails: each error, its jobs, a log; and what a mistyped target may mean."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from entropy_valley.experiment import failures

LAST = "WorkflowError:\nAt least one job did not complete successfully."
TARGETS = ["tables/main.tex", "tables/main.md", "figures/hero.png", "en-zh/llada/seed1/wmt22/ev/med-T8/scores.json"]


@pytest.fixture
def ended():
    """The last error of a run after these records."""
    heard = failures.Failures(lambda target: failures.nearest_paths(target, TARGETS))

    def said(message, *records, exception="WorkflowError"):
        last = SimpleNamespace(event=LogEvent.ERROR, exception=exception, msg=message)
        assert all(map(heard.filter, [*records, last]))
        return last.msg

    return said


def failed(job, log, rule="score"):
    """The records of a job that starts and fails."""
    wildcards = {"direction": "en-zh", "seed": str(job), "session": "x"}
    yield SimpleNamespace(event=LogEvent.JOB_INFO, jobid=job, rule_name=rule, wildcards=wildcards)
    yield SimpleNamespace(event=LogEvent.JOB_ERROR, jobid=job, rule_name=rule, log=[str(log)])


def test_each_error_is_said_once_with_its_jobs_and_a_log(ended, tmp_path):
    """The error is what follows the last ``error:`` of the log; what has none ends with its last line."""
    full, broken = tmp_path / "full.log", tmp_path / "broken.log"
    full.write_text("reading\nerror: one attempt\nreading\nerror: disk: full. Free space:\n  10 GB\n")
    broken.write_text("Traceback …\n 10%\rValueError: no\n\n")
    records = [*failed(1, full), *failed(2, broken, "train"), *failed(3, full)]
    assert ended(LAST, *records).splitlines() == [
        *LAST.splitlines(),
        "score en-zh.1, score en-zh.3: disk: full. Free space:",
        "    10 GB",
        f"  log: {full}",
        "train en-zh.2: ValueError: no",
        f"  log: {broken}",
    ]


def test_a_run_that_its_user_stops_says_how_to_go_on(ended, tmp_path):
    """Jobs that end because of it have not failed; one that failed before is named."""
    stop = SimpleNamespace(event=None, msg="Terminating processes on user request, this might take some time.")
    log = tmp_path / "no.log"
    before = f"score en-zh.1: it has left no word\n  log: {log}"
    assert ended(LAST, *failed(1, log), stop, *failed(2, log)) == f"{failures.STOPPED}\n{before}"


def test_a_job_without_a_log_is_named(ended, tmp_path):
    assert f"score en-zh.1: it has left no word\n  log: {tmp_path}/no.log" in ended(
        LAST, *failed(1, tmp_path / "no.log")
    )


def test_a_job_that_succeeds_in_its_second_attempt_has_not_failed(ended, tmp_path):
    done = SimpleNamespace(event=LogEvent.JOB_FINISHED, job_id=1)
    assert ended(LAST, *failed(1, tmp_path / "no.log"), done) == LAST


def test_other_errors_stay(ended):
    assert ended("WorkflowError:\nlocked") == "WorkflowError:\nlocked"


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("results/tables/mian.tex", "Did you mean tables/main.tex?"),
        ("results/demo/tables/main.tex", "Did you mean tables/main.tex?"),
        ("results/en-zh/lada/seed1/wmt22/evv/med-T8/scores.json", f"Did you mean {TARGETS[-1]}?"),
        ("results/tables/other.tex", failures.NAMES),
        ("main.tex", failures.NAMES),
    ],
)
def test_a_mistyped_target(ended, target, meant):
    message = f"MissingRuleException:\nNo rule to produce {target}"
    for said in (message, f"{message} (if you use input functions …)."):
        assert ended(said, exception="MissingRuleException") == f"{message}. {meant}"
