"""The forecast on recorded times: those of ``make demo-full``, see ``record.py``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from entropy_valley.experiment import base_files, load_files
from entropy_valley.forecast.forecast import Forecast, first_run, hindsight
from entropy_valley.forecast.rates import PAPERS, Rates
from entropy_valley.forecast.tasks import Tasks
from entropy_valley.forecast.texts import Texts
from entropy_valley.forecast.work import Work
from entropy_valley.reporting import against, reports

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((Path(__file__).parent / "demo-full.json").read_text())
STAGES = {"pretrain", "train", "inference", "generate", "comet", "canvas", "decode", "score"}


@pytest.fixture(scope="module")
def finished():
    """The tasks of the demo that have a recorded time, by their key."""
    files = [*base_files(ROOT), ROOT / "config/demo.yaml", ROOT / "config/demo-full.yaml"]
    experiment = load_files(files, reports.problems)
    tasks = Tasks(Work(experiment, Texts(experiment, RECORDED["texts"])))
    found = tasks.of(against.jobs(experiment).values())
    return {key: task for key, task in found.items() if key in RECORDED["seconds"]}


def test_the_first_runs_jobs_forecast_all_others_within_30_percent(finished):
    errors = {one.stage: one for one in hindsight("cpu", finished, RECORDED["seconds"])}
    assert errors.keys() >= STAGES
    assert {stage: errors[stage] for stage in STAGES if abs(errors[stage].error) > 0.3} == {}
    of = [errors[stage] for stage in STAGES]
    assert sum(one.forecast for one in of) == pytest.approx(sum(one.measured for one in of), rel=0.15)


def test_one_run_of_one_direction_and_seed_is_all_that_the_forecast_knows(finished):
    first = first_run(finished)
    trained = [task for task in first.values() if task.stage in ("train", "inference")]
    assert {task.key for task in trained} == {"train/en-zh.llada-tiny.seed1", "inference/en-zh.llada-tiny.seed1"}
    assert sum(task.stage == "pretrain" for task in first.values()) == 1


def test_twice_the_time_of_the_first_run_doubles_the_forecast(finished):
    first = first_run(finished)
    slow = {key: 2 * RECORDED["seconds"][key] for key in first}
    forecasts = [
        sum(map(Rates("cpu", first.values(), seconds).seconds, finished.values()))
        for seconds in (RECORDED["seconds"], slow)
    ]
    assert 1.7 < forecasts[1] / forecasts[0] <= 2


def test_before_any_job_the_whole_matrix_takes_the_papers_hours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    experiment = load_files([ROOT / "config/studies.yaml", ROOT / "config.yaml"], reports.problems)
    forecast = Forecast(experiment, against.jobs(experiment).values())
    assert forecast.gpu_seconds / 3600 == pytest.approx(PAPERS, rel=0.05)
    assert len(forecast.left) == len(forecast.jobs)
    weeks = [forecast.wall_clock(count) / 604_800 for count in (1, 8, 64)]
    assert weeks[0] == pytest.approx(PAPERS / 168, rel=0.1) and weeks[0] > 6 * weeks[1] > 6 * weeks[2]
    assert 80e9 < sum(one.bytes for one in forecast.downloads) < 95e9
