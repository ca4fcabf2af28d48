"""The table of costs: the hours of finished jobs, and when it is made."""

import pandas as pd
import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.config.load import load_merged, merge, overlay
from entropy_valley.experiment.config.matrix import sets_of
from entropy_valley.experiment.stats.job_costs import finished_seconds, gpus, stage_hours
from entropy_valley.experiment.stats.paper_numbers import OurTables, find
from entropy_valley.experiment.tables.report import Data, Results


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
    assert [tuple(row.values()) for row in rows] == [("train", 2.5, 20), ("score", 2, 2), ("train_comet", 0.5, 0)]
    assert stage_hours(benchmarks, gpus("cpu", 1))["gpu_hours"].sum() == 0


def test_a_benchmark_that_is_not_written_yet_ends_no_run(benchmarks):
    before = finished_seconds(benchmarks)
    (benchmarks / "score/two.tsv").touch()
    assert finished_seconds(benchmarks) == before


@pytest.mark.parametrize("text", ["started\ts\n2026\n", "s\nlong\n", "s\n"])
def test_a_file_that_is_no_benchmark_is_named(benchmarks, text):
    (benchmarks / "score/one.tsv").write_text(text)
    with pytest.raises(InputError, match=r"one\.tsv: is not a benchmark of a job"):
        stage_hours(benchmarks, {})


def test_it_is_made_when_all_timed_jobs_have_run():
    experiment = load_files(base_files())
    read = set(tables.configured(experiment)["tables/cost"].inputs())
    assert {one.scores("results") for one in sets_of(experiment).all} < read
    assert "results/en-zh/llada-8b/seed1/latency/wmt22/ev/med-T32.json" in read
    assert "results/en-zh/llada-8b/seed1/diagnostics.json" in read


def test_each_test_set_of_a_direction_has_rows_of_its_own(tmp_path):
    over = {"directions": {"en-zh": {"tests": ["wmt22", "wmt22-500"]}}, "tables": {"studies": []}}
    report = tables.configured(load_merged(overlay(merge(base_files()), over)))["tables/cost"]
    cells = pd.DataFrame([{"pool": "", **cell.key()} for cell in report.cells])
    cells = cells.assign(sentences=1, slots=0, passes=0, within_steps=0, length_mae=0)
    cells["calls"] = 32 + cells["testset"].map({"wmt22": 4, "wmt22-500": 5})
    shown = report.kind.make(Data(report.names, Results(tmp_path), pd.DataFrame(), cells))
    labels = [row.texts[0] for row in shown.rows]
    assert [label for label in labels if "En→Zh" in label and "T = 32" in label] == [
        "En→Zh (wmt22), T = 32",
        "En→Zh (wmt22-500), T = 32",
    ] * 2
    of_paper = find("sec:appendix_repro", "probe_share", setting="T=32", system="ev")
    assert OurTables({"cost": shown.numbers.fillna("").astype(str)}, {}).ours(of_paper).value == 5 / 32
