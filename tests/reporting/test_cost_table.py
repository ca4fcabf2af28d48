"""The table of costs: the probes' share, measured seconds, and the hours of the jobs' own records."""

from __future__ import annotations

import fake_results
import pytest
from making import made

from entropy_valley import files
from entropy_valley.analysis.job_costs import stage_hours
from entropy_valley.errors import InputError
from entropy_valley.experiment import base_files, load_files
from entropy_valley.reporting import reports
from entropy_valley.reporting.reports.cost import Cost
from entropy_valley.usage import COLUMNS


def record(path, *attempts):
    """The record of a job: seconds, GPUs, the GPU's name and the exit status of each attempt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        ("2026-01-01T00:00:00", f"{s:.2f}", "1", "1", gpus, gpu, "", status, "host")
        for s, gpus, gpu, status in attempts
    ]
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in [COLUMNS, *lines]))


@pytest.fixture
def benchmarks(tmp_path):
    root = tmp_path / "benchmarks"
    record(root / "train/one.tsv", (1800, 8, "H100", 1), (3600, 8, "H100", 0))
    record(root / "train/two.tsv", (3600, 8, "H200", 0))
    record(root / "score/one/med-T32.tsv", (7200, 0, "", 0))
    return root


def test_hours_are_those_of_all_attempts_by_stage_and_gpu(benchmarks):
    rows = stage_hours(benchmarks).to_dict("records")
    assert [
        (row["stage"], row["gpu"], row["attempts"], row["failed"], row["hours"], row["gpu_hours"]) for row in rows
    ] == [
        ("train", "H100", 2, 1, 1.5, 12),
        ("train", "H200", 1, 0, 1, 8),
        ("score", "", 1, 0, 2, 0),
    ]


def test_no_records_no_hours(tmp_path):
    assert stage_hours(tmp_path).empty


def test_a_record_that_is_none_is_named(benchmarks):
    (benchmarks / "score/one/med-T32.tsv").write_text("started\ts\n2026\t3\n")
    with pytest.raises(InputError, match=r"med-T32\.tsv: no record of a job's attempts"):
        stage_hours(benchmarks)


def params(root, benchmarks):
    given = fake_results.write(root, directions=("en-zh",), steps=(32,))
    given["cells"] = [cell for cell in given["cells"] if cell["method"] == "ev"]
    for cell, calls in zip(given["cells"], (35, 36, 37), strict=True):
        path = f"{cell['path'].rpartition('/')[0]}/decoding.json"
        info = files.read_json(path)
        files.write_json(path, info | {"calls": calls * info["sentences"]})
    measured = {"sentences": 32, "batch": 16, "device": "a GPU", "threads": 1, "torch": "2", "precision": "bf16"}
    measured |= {"token_budget": 9, "date": "today", "single": {"seconds_per_sentence": 3, "repeats": [3]}}
    files.write_json(root / "latency.json", {**measured, "batched": {"seconds_per_sentence": 1.25}})
    timed = [["en-zh", "ev", str(root / "latency.json")]]
    return {**given, "candidates": {"en-zh": 5}, "timed": timed, "benchmarks": str(benchmarks)}


def test_each_cost_stands_beside_the_papers(tmp_path, benchmarks):
    table, numbers = made(Cost, params(tmp_path, benchmarks))
    rows = {
        (part.heading, group.label): [cell.text for cell in group.rows[0].cells]
        for part in table.sections
        for group in part.groups
    }
    assert rows["Probes, share of the steps", "En→Zh, T = 32"] == ["12.5%", "–"]  # 4 probes, the mean over runs
    assert rows["Probes at most, share of the steps", "En→Zh, T = 64"] == ["7.8%", "≤7.8%"]
    assert rows["Seconds a sentence, one at a time", "En→Zh, EV"] == ["3.0000", "–"]
    assert rows["Seconds a sentence, batched", "En→Zh, EV"] == ["1.2500", "≈1.7"]
    assert rows["GPU-hours by stage", "train (H100)"] == ["12.00", "–"]
    assert rows["GPU-hours by stage", "all"] == ["20.00", "≈420"]
    assert rows["Hours by stage", "all"] == ["4.50", "–"]
    assert any("batches of 16" in note.text for note in table.notes)
    assert set(numbers) == {"part", "direction", "item", "here", "paper"}


def test_it_is_made_when_all_is_scored():
    experiment = load_files(base_files())
    report = reports.configured(experiment)["tables/cost"]
    read = set(report.inputs(experiment))
    assert "results/en-zh/dream-7b/seed1/wmt22/ratio/med-T32/scores.json" in read
    assert "results/en-zh/llada-8b/seed1/wmt22/ev/med-T32/latency.json" in read
