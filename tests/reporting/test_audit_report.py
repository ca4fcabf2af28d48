"""The audit as it is printed, written and asked for on the command line."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from pathlib import Path

import fake_chain
import pytest
import yaml

from entropy_valley import digest_cache
from entropy_valley.errors import InputError
from entropy_valley.experiment import base_files, load_files
from entropy_valley.experiment.loading import overlay
from entropy_valley.experiment.matrix import Cell, Run, all_cells
from entropy_valley.reporting import audit, reports

ROOT = Path(__file__).parents[2]
EV = Cell(Run("en-zh", "llada-tiny", 2), "grammar", "ev", "med", 32)
METHODS = ["oracle", "ratio", "ev"]
MINE = {"matrix": {"backbones": ["llada-tiny"], "directions": ["en-zh", "en-de"], "methods": METHODS}}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The demo's results for one backbone, all done; makes the same config with something laid over it."""
    monkeypatch.chdir(tmp_path)

    def experiment(**over):
        Path("mine.yaml").write_text(yaml.safe_dump(overlay(MINE, over)))
        return load_files([*base_files(ROOT), ROOT / "config/demo.yaml", "mine.yaml"], reports.problems)

    fake_chain.write(experiment())
    return experiment


def printed(capsys, experiment, **options):
    audit.report(experiment, **options)
    return capsys.readouterr().out


def test_what_is_done_is_a_screenful_by_run_and_by_rule(results, capsys):
    text = printed(capsys, results())
    lines = [line.split() for line in text.splitlines()]
    assert ["llada-tiny", "en-zh", "1–3", "9", "9", "–"] in lines
    assert ["decode", "18", "18", "–"] in lines and ["train", "8", "8", "–"] in lines
    assert text.endswith("20 cells: 20 done, 0 missing\n")
    assert len(lines) < 25 and max(map(len, text.splitlines())) <= 120


def test_a_changed_param_is_said_in_words(results, capsys):
    text = printed(capsys, results(length_methods={"ev": {"ratios": {"en-zh": [0.6, 0.8]}}}))
    assert "stale: canvas: EV ratios of en-zh: 0.55 0.62 0.71 0.8 1.0 → 0.6 0.8 (3 cells)\n" in text
    assert "\n    en-zh × llada-tiny × seeds 1–3 × grammar × ev\n" in text
    assert text.endswith("20 cells: 17 done, 3 stale, 0 missing\n")


def test_a_reason_that_many_share_is_said_once(results, capsys):
    text = printed(capsys, results(training={"lora": {"rank": 16}}, directions={"en-de": {"prompt": "{src} = "}}))
    assert text.count("training.lora.rank: 8 → 16") == 2  # with the changed prompt of En→De, and without
    assert "prompt of en-de: German: {src}\\n → {src} = " in text


def test_a_failure_names_its_log(results, capsys):
    for name in ("hypotheses.jsonl", "decoding.json", "scores.jsonl", "scores.json"):
        Path(EV.folder("results/demo"), name).unlink()
    log = Path("results/demo/logs/decode/en-zh.llada-tiny.seed2.grammar.ev.med-T32.log")
    log.write_text("error: results/demo/store: no space.\n")
    text = printed(capsys, results())
    assert "failed: decode: error: results/demo/store: no space. (1 cell)\n" in text
    assert f"\n    log: {log}\n" in text
    assert text.endswith("20 cells: 19 done, 1 failed, 0 missing\n")


def test_the_file_has_one_line_for_each_cell_and_says_why(results, tmp_path):
    Path(EV.scores("results/demo")).write_text("")
    audit.report(results(), tmp_path / "audit" / "matrix.tsv")
    header, *rows = [line.split("\t") for line in (tmp_path / "audit" / "matrix.tsv").read_text().splitlines()]
    coordinates = ["backbone", "direction", "seed", "testset", "method", "order", "steps", "pool"]
    assert header == [*coordinates, "state", "rule", "why", "log"]
    assert len(rows) == len(all_cells(results()))
    assert rows[0] == ["llada-tiny", "en-zh", "1", "grammar", "oracle", "med", "32", "", "done", "", "", ""]
    (damaged,) = [row for row in rows if row[8] != "done"]
    assert damaged[:7] == ["llada-tiny", "en-zh", "2", "grammar", "ev", "med", "32"]
    assert damaged[8:] == ["damaged", "score", "scores.json is empty", ""]


def test_cells_are_listed_on_request(results, capsys):
    Path(EV.scores("results/demo")).write_text("")
    text = printed(capsys, results(), only={"state": ["damaged"]}, cells=True)
    assert text.count("scores.json is empty") == 2 and text.endswith("1 cells: 0 done, 1 damaged, 0 missing\n")
    text = printed(capsys, results(), only={"method": ["ratio"], "direction": ["en-zh"]}, cells=True)
    assert text.endswith("3 cells: 3 done, 0 missing\n")


def test_results_without_records_are_counted(results, capsys):
    for record in Path("results").rglob("*.made.json"):
        record.unlink()
    text = printed(capsys, results())
    assert "20 cells: 20 done, 0 missing\n20 of them have no record of their settings" in text


def command(*arguments):
    start = time.monotonic()
    options = [*map(str, base_files(ROOT)), str(ROOT / "config/demo.yaml"), "mine.yaml"]
    finished = subprocess.run(
        [sys.executable, "-m", "entropy_valley", "audit", *arguments, "--configfile", *options],
        capture_output=True,
        text=True,
    )
    return finished.returncode, finished.stdout + finished.stderr, time.monotonic() - start


def test_the_command_is_quick_and_ends_with_an_error_only_if_asked(results):
    Path(EV.scores("results/demo")).write_text("")
    results()
    status, said, seconds = command("--out", "matrix.tsv")
    assert (status, seconds < 10, Path("matrix.tsv").is_file()) == (0, True, True), said
    assert command("--check")[0] == 1
    assert command("--check", "--method", "ratio")[0] == 0


def test_a_name_that_no_cell_has_is_an_error(results):
    audit.require_known(results(), {"method": ["ev", "ratio"], "backbone": ["llada-tiny"], "state": ["stale"]})
    wrong = {"backbone": [], "method": ["ev", "ratoi"], "testset": ["wmt22", "ratio"]}
    with pytest.raises(InputError, match=r"--method, --testset: .* 'ratoi'; did you mean ratio\?.* 'wmt22'.* 'ratio'"):
        audit.require_known(results(), wrong)


def test_ten_thousand_cells_take_five_seconds(tmp_path, monkeypatch, capsys):
    """A tenth of them in a tenth of the time: to write their files takes longer than to look at them. Their contents
    are read once, before."""
    monkeypatch.chdir(tmp_path)
    paper = load_files([*base_files(ROOT)])
    wide = {"seeds": list(range(1, 6)), "methods": [*METHODS, "ev_sum", "ev_line", "cal"], "steps": [8, 16, 32]}
    experiment = paper.model_copy(update={"matrix": paper.matrix.model_copy(update=wide)})
    fake_chain.write(experiment, logs=False)
    count = len(all_cells(experiment))
    assert count > 1000
    monkeypatch.setattr(digest_cache, "SETTLED", -1)
    audit.report(experiment)
    seconds = []
    gc.freeze()  # what other tests have left in memory is no work of the audit
    for _ in range(3):
        start = time.process_time()
        audit.report(experiment)
        seconds.append(time.process_time() - start)
    gc.unfreeze()
    assert min(seconds) < count / 10_000 * 5  # the least disturbed: other tests run beside this one
    assert f"{count} cells: {count} done, 0 missing" in capsys.readouterr().out
