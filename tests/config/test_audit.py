"""The audit: the state of every cell, and the reason for it, by a dry run, headers and logs; and how it is printed."""

import contextlib
import os
import shutil
import sys
from pathlib import Path

import fake_chain
import pytest
from job_lists import jobs_of, planned_of

from entropy_valley.experiment import cli
from entropy_valley.experiment.cli import audit
from entropy_valley.experiment.config.matrix import Cell, Run, all_cells
from entropy_valley.experiment.runs.audit import DONE, MISSING, STALE, Audit
from entropy_valley.files import bytes_digest

SMALL = {
    "matrix": {
        "backbones": ["llada-tiny"],
        "directions": ["en-zh", "en-de"],
        "seeds": [1, 2],
        "methods": ["oracle", "ratio", "ev", "ev_fit"],
    },
    "tables": {"studies": []},
    "autoregressive": {"backbones": ["llama3-tiny"]},
}
RUN = Run("en-zh", "llada-tiny", 1)
EV = Cell(RUN, "grammar", "ev", "med", 32)
SET = Path("results/demo/en-zh/llada-tiny/seed1/matrix")
NOTHING = bytes_digest(b"")[:12]
LOST = Path("results/demo/en-zh/llada-tiny/seed2/matrix/scores.jsonl")
RANK = {"training": {"lora": {"rank": 16}}}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The jobs of a small config that have to run, and of the same with something laid over it."""
    monkeypatch.chdir(tmp_path)

    def loaded(**over):
        return planned_of({**SMALL, **over}, "config/demo.yaml")

    return loaded


def every(**over):
    """All jobs."""
    return jobs_of({**SMALL, **over}, "config/demo.yaml")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    with contextlib.chdir(tmp_path_factory.mktemp("written")):
        fake_chain.write(every())
        return Path.cwd()


@pytest.fixture
def done(small, written):
    """Its results, all done."""
    shutil.copytree(written, ".", dirs_exist_ok=True)
    return every()


def cells(jobs):
    return all_cells(jobs.experiment)


def states(jobs):
    return {one.cell: one.state for one in Audit(jobs).cells()}


def of_state(jobs, state):
    return {cell for cell, found in states(jobs).items() if found == state}


def reasons(jobs, cell=EV):
    """The state of a cell, and rule and text of its reasons."""
    found = next(one for one in Audit(jobs).cells() if one.cell == cell)
    return [found.state, *((reason.rule, reason.text) for reason in found.reasons)]


def test_nothing_is_there_at_first(small):
    planned = small()
    assert list(states(planned)) == cells(planned)
    assert set(states(planned).values()) == {MISSING}
    assert reasons(planned) == [MISSING, ("corpus", "new")]


def test_what_was_not_repeated_after_its_inputs_were_is_made_from_another(small, done):
    """As after a failure: the adapter is new, its translations are not."""
    other = small(**RANK)
    assert reasons(other) == [STALE, ("train", "training.lora.rank: 8 → 16")]
    again = every(**RANK).by_output
    fake_chain.make(again["results/demo/en-zh/llada-tiny/seed1/adapter/adapter.json"])
    assert reasons(other) == [STALE, ("translate", "made from another adapter")]
    fake_chain.make(again[str(SET / "translations.jsonl")])
    assert reasons(other) == [DONE]


def test_inputs_that_were_made_again_with_another_content(small, done):
    translations = done.by_output[str(SET / "translations.jsonl")]
    fake_chain.make(translations, content="other")
    assert reasons(small()) == [STALE, ("score", f"{SET}/scores.jsonl: translations.jsonl was made again after it")]


def test_a_new_cell_of_a_set_is_missing_and_the_others_are_done(small, done):
    other = small(matrix={**SMALL["matrix"], "methods": ["oracle", "ratio", "ev", "ev_fit", "ev_sum"]})
    assert {cell.method for cell in of_state(other, MISSING)} == {"ev_sum"}
    assert len(of_state(other, DONE)) == len(cells(done))
    cell = Cell(RUN, "grammar", "ev_sum", "med", 32)
    assert reasons(other, cell) == [MISSING, ("translate", "not among the cells of its set yet")]


def test_a_fit_concerns_the_methods_that_use_it(small, done):
    other = small(length_methods={"ev_fit": {"pairs": 7}})
    assert {cell.method for cell in of_state(other, STALE)} == {"ev_fit"}


def test_damage_is_stale(small, done):
    """A file that is cut, or has another content of the same size; a record that cannot be read, was edited, or is not
    there."""
    planned, scores = small(), SET / "scores.jsonl"
    content, header = scores.read_bytes(), scores.with_suffix(".json").read_bytes()
    known = bytes_digest(content)[:12]
    scores.write_bytes(b"")
    edited = f"{scores}: scores.jsonl was edited: its digest is {NOTHING}, {known} was written"
    assert reasons(planned) == [STALE, ("score", edited)]
    scores.write_bytes(content[::-1])
    assert reasons(planned)[1][1].startswith(f"{scores}: scores.jsonl was edited: its digest is ")
    scores.write_bytes(content)
    scores.with_suffix(".json").write_text('{"rule": "score"')
    assert reasons(planned)[1][1].startswith(f"{SET}/scores.json:1: not JSON")
    scores.with_suffix(".json").write_bytes(header.replace(b'"rule": "score"', b'"rule": "other"'))
    assert reasons(planned)[1][1].startswith(f"{SET}/scores.json: was edited: its digest is ")
    scores.with_suffix(".json").write_bytes(header)


def test_a_missing_cell_begins_at_the_first_file_that_lacks(small, done):
    (SET / "scores.json").unlink()
    assert reasons(small()) == [MISSING, ("score", "new")]
    (SET / "scores.jsonl").unlink()
    (SET / "translations.jsonl").unlink()
    assert reasons(small()) == [MISSING, ("translate", "new")]


def test_the_error_of_a_failed_job_is_the_reason(small, done):
    """A log without an error may be of a job that runs, or was killed."""
    (SET / "scores.jsonl").unlink()
    failed = small()
    log = Path("results/demo/logs/score/en-zh.llada-tiny.seed1.matrix.log")
    log.write_text("50 %\n")
    assert reasons(failed) == [MISSING, ("score", "new")]
    log.write_text("50 %\nerror: translations.jsonl:3: no id. Each row needs id.\nerror: not written\n")
    assert of_state(failed, MISSING) == {cell for cell in cells(failed) if cell.run == RUN}
    assert reasons(failed) == [MISSING, ("score", "error: translations.jsonl:3: no id. Each row needs id.")]
    log.write_text("Traceback (most recent call last):\n  File x\nRuntimeError: CUDA out of memory\n")
    assert reasons(failed) == [MISSING, ("score", "RuntimeError: CUDA out of memory")]
    log.write_text("error: of another person, \x1b[2J which would clear the terminal\n")
    assert reasons(failed)[1][1] == "error: of another person, U+001B[2J which would clear the terminal"


def test_a_retraining_that_fails_is_told_though_the_old_adapter_is_there(small, done):
    log = Path("results/demo/logs/train/en-zh.llada-tiny.seed1.log")
    log.write_text("error: disk: No space left on device.\n")
    changed, planned = ("train", "training.lora.rank: 8 → 16"), every(**RANK)
    assert reasons(planned) == [STALE, ("train", "error: disk: No space left on device."), changed]
    os.utime(log, (1, 1))  # of an earlier try
    assert reasons(planned) == [STALE, changed]


def test_a_purged_file_is_missing_only_where_a_new_cell_needs_it(small, done):
    """Weights on a scratch disk, rows that are scored: finished cells stay finished."""
    (SET.parent / "adapter/adapter_model.safetensors").unlink()
    (SET / "translations.jsonl").unlink()
    assert set(states(small()).values()) == {DONE}
    wider = every(matrix={**SMALL["matrix"], "methods": ["oracle", "ratio", "ev", "ev_fit", "ev_sum"]})
    assert reasons(wider, Cell(RUN, "grammar", "ev_sum", "med", 32)) == [MISSING, ("train", "interrupted or forced")]
    assert reasons(wider) == [DONE]


# --- The command.


@pytest.fixture
def command(small, done, monkeypatch, capsys):
    """Run `entropy-valley audit` on these results, by a config with something laid over it: status and output."""

    def run(*arguments, **over):
        monkeypatch.setattr(audit.configs, "experiment", lambda *_: None)
        monkeypatch.setattr(audit, "listed", lambda *_: small(**over))
        monkeypatch.setattr(sys, "argv", ["entropy-valley", "audit", *arguments])
        try:
            cli.main()
        except SystemExit as ended:
            return ended.code, capsys.readouterr().out
        return 0, capsys.readouterr().out

    return run


def test_what_is_done_is_a_screenful_by_run(command):
    _, text = command()
    lines = [line.split() for line in text.splitlines()]
    assert ["llada-tiny", "en-zh", "1", "2", "8", "8", "–"] in lines
    assert text.endswith("20 cells: 20 done, 0 missing\n")
    assert len(lines) < 30 and max(map(len, text.splitlines())) <= 120


def test_a_changed_param_is_said_with_the_cells_that_it_changes(command):
    """Their set is repeated, but of the other cells nothing changes."""
    _, text = command(length_methods={"ev": {"ratios": {"en-zh": [0.6, 0.8]}}})
    assert "stale: translate: methods.ev.ratios: [0.55,0.62,0.71,0.8,1.0] → [0.6,0.8] (2 cells)\n" in text
    assert "\n    llada-tiny · en-zh · seed 1 2 · grammar · ev · med · T 32\n" in text
    assert text.endswith("20 cells: 18 done, 2 stale, 0 missing\n")


def test_a_failure_names_its_log(command):
    LOST.unlink()
    log = Path("results/demo/logs/score/en-zh.llada-tiny.seed2.matrix.log")
    log.write_text("error: results/demo/store: no space.\n")
    _, text = command()
    assert "missing: score: error: results/demo/store: no space. (4 cells)\n" in text
    assert f"\n    log: {log}\n" in text and text.endswith("20 cells: 16 done, 4 missing\n")


def test_the_files_have_each_cell_and_say_why(command):
    LOST.write_text("")
    status, text = command("--check")
    assert status == 1 and text.count("scores.jsonl was edited") == 1
    header, *rows = [line.split("\t") for line in Path("results/demo/audit/matrix.tsv").read_text().splitlines()]
    coordinates = ["backbone", "direction", "seed", "testset", "method", "order", "steps", "pool"]
    assert header == [*coordinates, "state", "rule", "why", "log"] and len(rows) == 20
    assert rows[0] == ["llada-tiny", "en-zh", "1", "grammar", "oracle", "med", "32", "", "done", "", "", ""]
    first, *_ = [row for row in rows if row[8] != "done"]
    assert first[2] == "2" and first[8:10] == ["stale", "score"] and first[10].startswith(f"{LOST}: scores.jsonl was ")
    assert "scores.jsonl was edited" in Path("results/demo/audit/matrix.html").read_text()


def test_it_is_printed_where_its_page_cannot_be_written(command):
    Path("results/demo/audit").write_text("a file in the place of the folder")
    status, text = command()
    assert status == 0 and "The page of this audit is not written" in text and "results/demo/audit" in text
