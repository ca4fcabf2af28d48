"""The table of costs: the probes' share, measured seconds, and the hours of finished jobs."""

from __future__ import annotations

import fake_results
import pytest
from fake_sets import put, rows
from making import made

from entropy_valley import files, tables
from entropy_valley.config import base_files, load_files
from entropy_valley.errors import InputError
from entropy_valley.results import TRANSLATIONS
from entropy_valley.runs.inventory import Inventory
from entropy_valley.stats.job_costs import finished_seconds, gpus, stage_hours
from entropy_valley.tables.cost import Cost


def benchmark(path, seconds):
    """What Snakemake leaves of a finished job."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"s\th:m:s\tmax_rss\tcpu_time\n{seconds:.4f}\t1:00:00\t1200.25\tNA\n")


@pytest.fixture
def benchmarks(tmp_path):
    root = tmp_path / "benchmarks"
    benchmark(root / "train/one.tsv", 3600)
    benchmark(root / "train/two.tsv", 5400)
    benchmark(root / "score/one.tsv", 7200)
    benchmark(root / "train_comet.tsv", 1800)
    return root


def test_hours_are_those_of_finished_jobs_by_stage(benchmarks):
    rows = stage_hours(benchmarks, gpus("cuda", 8)).to_dict("records")
    assert [tuple(row.values()) for row in rows] == [
        ("train", 2, 2.5, 20),
        ("score", 1, 2, 2),
        ("train_comet", 1, 0.5, 0),
    ]
    assert stage_hours(benchmarks, gpus("cpu", 1))["gpu_hours"].sum() == 0


def test_a_benchmark_that_is_not_written_yet_ends_no_run(benchmarks):
    before = finished_seconds(benchmarks)
    (benchmarks / "score/two.tsv").touch()
    assert finished_seconds(benchmarks) == before


def test_no_benchmarks_no_hours(tmp_path):
    assert stage_hours(tmp_path, {}).empty


@pytest.mark.parametrize("text", ["started\ts\n2026\n", "s\nlong\n", "s\n"])
def test_a_file_that_is_no_benchmark_is_named(benchmarks, text):
    (benchmarks / "score/one.tsv").write_text(text)
    with pytest.raises(InputError, match=r"one\.tsv: is no benchmark of a job"):
        stage_hours(benchmarks, {})


def params(root, benchmarks):
    given = fake_results.write(root, directions=("en-zh",), steps=(32,))
    given["cells"] = [cell for cell in given["cells"] if cell["method"] == "ev"]
    for cell, calls in zip(given["cells"], (35, 36, 37), strict=True):
        put(cell, TRANSLATIONS, calls=calls * len(rows(cell, TRANSLATIONS)))
    measured = {"sentences": 32, "batch": 16, "device": "a GPU", "threads": 1, "torch": "2", "precision": "bf16"}
    measured |= {"token_budget": 9, "date": "today", "single": {"seconds_per_sentence": 3, "repeats": [3]}}
    files.write_json(root / "latency.json", {**measured, "batched": {"seconds_per_sentence": 1.25}})
    timed = [["en-zh", "ev", str(root / "latency.json")]]
    return {**given, "candidates": {"en-zh": 5}, "timed": timed, "benchmarks": str(benchmarks), "gpus": gpus("cuda", 8)}


def test_each_cost_stands_beside_the_papers(tmp_path, benchmarks):
    table, numbers = made(Cost, params(tmp_path, benchmarks))
    shown = {
        (part.heading, group.label): [cell.text for cell in group.rows[0].cells]
        for part in table.sections
        for group in part.groups
    }
    assert shown["Probes, share of the steps", "En→Zh, T = 32"] == ["12.5%", "–"]  # 4 probes, the mean over runs
    assert shown["Probes at most, share of the steps", "En→Zh, T = 64"] == ["7.8%", "≤7.8%"]
    assert shown["Seconds a sentence, one at a time", "En→Zh, EV"] == ["3.0000", "–"]
    assert shown["Seconds a sentence, batched", "En→Zh, EV"] == ["1.2500", "≈1.7"]
    assert shown["GPU-hours by stage", "train"] == ["20.00", "–"]
    assert shown["GPU-hours by stage", "all"] == ["22.00", "≈420"]
    assert shown["Hours by stage", "all"] == ["5.00", "–"]
    assert any("batches of 16" in note.text for note in table.notes)
    assert set(numbers) == {"part", "direction", "item", "here", "paper"}


def test_it_is_made_when_all_timed_jobs_have_run():
    experiment = load_files(base_files())
    report = tables.configured(experiment)["tables/cost"]
    read = set(report.inputs(experiment))
    jobs = Inventory(experiment).all()
    assert {job.outputs[0] for job in jobs if job.rule in ("score", "latency", "diagnose")} <= read
    assert "results/en-zh/llada-8b/seed1/latency/wmt22/ev/med-T32.json" in read
