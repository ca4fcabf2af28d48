"""The audit as it is printed, written and asked for on the command line."""

from __future__ import annotations

from pathlib import Path

import fake_chain
import pytest
import yaml
from job_lists import jobs_of, planned_of

from entropy_valley.experiment import tables
from entropy_valley.experiment.cli import audit
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.config.expand import overlay

ROOT = Path(__file__).parents[2]
FILES = [*map(str, base_files(ROOT)), str(ROOT / "config/demo.yaml"), "mine.yaml"]
MINE = {
    "matrix": {
        "backbones": ["llada-tiny"],
        "directions": ["en-zh", "en-de"],
        "methods": ["oracle", "ratio", "ev"],
        "seeds_of": {"llama3-tiny": [1]},
    },
    "autoregressive": {"backbones": ["llama3-tiny"]},
    "valley": {"backbones": []},
}
GRID = {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8]}}}}
LOST = Path("results/demo/en-zh/llada-tiny/seed2/matrix/scores.jsonl")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The demo's results for one backbone, all done; makes the same config with something laid over it."""
    monkeypatch.chdir(tmp_path)

    def experiment(**over):
        Path("mine.yaml").write_text(yaml.safe_dump(overlay(MINE, over)))
        return load_files(FILES, tables.problems)

    def listed(*_):
        return planned_of(yaml.safe_load(Path("mine.yaml").read_text()), "config/demo.yaml")

    monkeypatch.setattr(audit, "listed", listed)
    experiment()
    fake_chain.write(jobs_of(MINE, "config/demo.yaml"))
    return experiment


@pytest.fixture
def command(status_of, capsys):
    """Run `entropy-valley audit`: its exit status, and what it prints."""

    def run(*arguments):
        return status_of("audit", *arguments, "--configfile", *FILES), capsys.readouterr().out

    return run


def test_what_is_done_is_a_screenful_by_run(results, command):
    _, text = command()
    lines = [line.split() for line in text.splitlines()]
    assert ["llada-tiny", "en-zh", "1", "2", "3", "9", "9", "–"] in lines
    assert text.endswith("20 cells: 20 done, 0 missing\n")
    assert len(lines) < 30 and max(map(len, text.splitlines())) <= 120


def test_a_changed_param_is_said_with_the_cells_that_it_changes(results, command):
    results(**GRID)
    _, text = command()
    assert "stale: translate: methods.ev.ratios: [0.55,0.62,0.71,0.8,1.0] → [0.6,0.8] (3 cells)\n" in text
    assert "\n    llada-tiny · en-zh · seed 1 2 3 · grammar · ev · med · T 32\n" in text
    assert text.endswith("20 cells: 17 done, 3 stale, 0 missing\n")


def test_a_failure_names_its_log(results, command):
    LOST.unlink()
    log = Path("results/demo/logs/score/en-zh.llada-tiny.seed2.matrix.log")
    log.write_text("error: results/demo/store: no space.\n")
    _, text = command()
    assert "missing: score: error: results/demo/store: no space. (3 cells)\n" in text
    assert f"\n    log: {log}\n" in text
    assert text.endswith("20 cells: 17 done, 3 missing\n")


def test_the_files_have_each_cell_and_say_why(results, command):
    LOST.write_text("")
    command()
    header, *rows = [line.split("\t") for line in Path("results/demo/audit/matrix.tsv").read_text().splitlines()]
    coordinates = ["backbone", "direction", "seed", "testset", "method", "order", "steps", "pool"]
    assert header == [*coordinates, "state", "rule", "why", "log"]
    assert len(rows) == 20
    assert rows[0] == ["llada-tiny", "en-zh", "1", "grammar", "oracle", "med", "32", "", "done", "", "", ""]
    stale = [row for row in rows if row[8] != "done"]
    assert stale[0][:7] == ["llada-tiny", "en-zh", "2", "grammar", "oracle", "med", "32"]
    assert stale[0][8:10] == ["stale", "score"] and stale[0][10].startswith(
        f"{LOST}: scores.jsonl was edited: its digest is "
    )
    assert "scores.jsonl was edited" in Path("results/demo/audit/matrix.html").read_text()


def test_cells_are_listed_on_request(results, command):
    LOST.write_text("")
    _, text = command("--cells")
    assert text.count("scores.jsonl was edited") == 4


def test_it_is_printed_where_its_page_cannot_be_written(results, command):
    Path("results/demo/audit").write_text("a file in the place of the folder")
    status, text = command()
    assert status == 0 and "The page of this audit is not written" in text and "results/demo/audit" in text


def test_it_ends_with_an_error_only_if_asked(results, command):
    LOST.write_text("")
    assert command()[0] == 0
    assert command("--check")[0] == 1
