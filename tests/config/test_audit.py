"""The audit: the state of every cell and job, and the reason for it, from files, records and logs alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import fake_chain
import pytest
from job_lists import jobs_of

from entropy_valley.config.matrix import Cell, Run, all_cells, sets_of
from entropy_valley.files import bytes_digest
from entropy_valley.runs.audit import DONE, MISSING, STALE, UNNEEDED, Audit, against

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
GRID = {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8]}}}}
RANK = {"training": {"lora": {"rank": 16}}}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The jobs of a small config, and of the same with something laid over it."""
    monkeypatch.chdir(tmp_path)

    def loaded(**over):
        return jobs_of({**SMALL, **over}, "config/demo.yaml")

    return loaded


@pytest.fixture
def done(small):
    """Its results, all done."""
    return fake_chain.write(small())


def cells(jobs):
    return all_cells(jobs.experiment)


def states(jobs):
    return {one.cell: one.state for one in Audit(jobs).cells()}


def of_state(jobs, state):
    return {cell for cell, found in states(jobs).items() if found == state}


def reasons(jobs, cell=EV):
    """The state of a cell, and rule and text of its reasons."""
    found = Audit(jobs).cell(cell)
    return [found.state, *((reason.job.rule, reason.text) for reason in found.reasons)]


def of_rule(jobs, rule):
    return {one.state for one in Audit(jobs).all() if one.job.rule == rule}


def test_nothing_is_there_at_first(small):
    assert list(states(small())) == cells(small())
    assert set(states(small()).values()) == {MISSING}
    assert reasons(small()) == [MISSING, ("corpus", "not made yet")]


def test_all_is_done(small, done):
    assert {one.state for one in Audit(small()).all()} == {DONE}
    assert set(states(small()).values()) == {DONE}


def test_another_grid_is_stale_in_the_cells_that_use_it(small, done):
    """Their set is repeated, but of the other cells nothing changes."""
    other = small(**GRID)
    ours = {cell for cell in cells(other) if cell.run.direction == "en-zh" and cell.method == "ev"}
    assert of_state(other, STALE) == ours
    (state, (rule, text)) = reasons(other)
    assert (state, rule) == (STALE, "translate")
    assert text == "methods.ev.ratios: [0.55,0.62,0.71,0.8,1.0] → [0.6,0.8]"
    assert of_rule(other, "translate") == of_rule(other, "score") == {DONE, STALE}
    assert of_rule(other, "train") == {DONE}


def test_another_rank_is_stale_with_all_that_is_translated_by_these_adapters(small, done):
    other = small(**RANK)
    assert of_state(other, STALE) == set(cells(other))
    assert reasons(other) == [STALE, ("train", "training.lora.rank: 8 → 16")]
    assert of_rule(other, "score") == of_rule(other, "comparison") == {STALE}


def test_what_was_not_repeated_after_its_inputs_were_is_made_from_another(small, done):
    """As after a failure: the adapter is new, its translations are not."""
    other = small(**RANK)
    again = other.by_output
    fake_chain.make(again["results/demo/en-zh/llada-tiny/seed1/adapter/adapter.json"])
    assert reasons(other) == [STALE, ("translate", "made from another adapter")]
    fake_chain.make(again[str(SET / "translations.jsonl")])
    assert reasons(other) == [STALE, ("score", "made from another translations")]
    fake_chain.make(again[str(SET / "scores.jsonl")])
    assert reasons(other) == [DONE]


def test_inputs_that_were_made_again_with_another_content(small, done):
    translations = done.by_output[str(SET / "translations.jsonl")]
    fake_chain.make(translations)
    assert reasons(small()) == [DONE]
    fake_chain.make(translations, content="other")
    assert reasons(small()) == [STALE, ("score", "translations.jsonl was made again after it")]


def test_a_new_cell_of_a_set_is_missing_and_the_others_are_done(small, done):
    other = small(matrix={**SMALL["matrix"], "methods": ["oracle", "ratio", "ev", "ev_fit", "ev_sum"]})
    assert {cell.method for cell in of_state(other, MISSING)} == {"ev_sum"}
    assert len(of_state(other, DONE)) == len(cells(small()))
    cell = Cell(RUN, "grammar", "ev_sum", "med", 32)
    assert reasons(other, cell) == [MISSING, ("translate", "not among the cells of its set yet")]
    assert of_rule(other, "translate") == {DONE, STALE}


def test_a_fit_concerns_the_methods_that_use_it(small, done):
    other = small(length_methods={"ev_fit": {"pairs": 7}})
    assert {cell.method for cell in of_state(other, STALE)} == {"ev_fit"}
    fewer = {**SMALL["matrix"], "methods": ["oracle", "ratio", "ev"]}
    assert set(states(small(matrix=fewer)).values()) == {DONE}


def test_other_scores_are_stale_in_the_scores_alone(small, done):
    other = small(scoring={"bleu": {"tokenize": "intl"}})
    assert reasons(other)[:1] == [STALE] and reasons(other)[1][0] == "score"
    assert of_rule(other, "translate") == {DONE}


def test_damage_is_stale(small, done):
    """A file that is cut, or has another content of the same size; a record that cannot be read, was edited, or is not
    there."""
    scores = SET / "scores.jsonl"
    content, header = scores.read_bytes(), scores.with_suffix(".json").read_bytes()
    known = bytes_digest(content)[:12]
    scores.write_bytes(b"")
    edited = f"scores.jsonl was edited: its digest is {NOTHING}, {known} was written"
    assert reasons(small()) == [STALE, ("score", edited)]
    scores.write_bytes(content[::-1])
    assert reasons(small())[1][1].startswith("scores.jsonl was edited: its digest is ")
    scores.write_bytes(content)
    scores.with_suffix(".json").write_text('{"rule": "score"')
    assert reasons(small()) == [STALE, ("score", f"its record {SET}/scores.json is not a record of a result")]
    scores.with_suffix(".json").write_bytes(header.replace(b'"rule": "score"', b'"rule": "other"'))
    assert reasons(small())[1][1].startswith(f"its record {SET}/scores.json was edited: its digest is ")
    scores.with_suffix(".json").write_bytes(header)


def test_a_moved_adapter_or_corpus_leaves_finished_cells_done(small, done):
    for path in ("en-zh/llada-tiny/seed1/adapter", "corpus/en-zh", "backbones/llada-tiny.json"):
        Path("results/demo", path).rename(Path("elsewhere").with_suffix(f".{len(path)}"))
    assert set(states(small()).values()) == {DONE}


def test_what_is_left_to_do_of_a_missing_cell_begins_at_the_first_that_lacks(small, done):
    (SET / "scores.json").unlink()
    assert reasons(small()) == [MISSING, ("score", "no scores.json")]
    (SET / "translations.jsonl").unlink()
    assert reasons(small()) == [MISSING, ("translate", "no translations.jsonl")]


def test_the_error_of_a_failed_job_is_the_reason(small, done):
    """A log without an error may be of a job that runs, or was killed."""
    (SET / "scores.jsonl").unlink()
    log = Path("results/demo/logs/score/en-zh.llada-tiny.seed1.matrix.log")
    log.write_text("50 %\n")
    assert reasons(small()) == [MISSING, ("score", "no scores.jsonl")]
    log.write_text("50 %\nerror: translations.jsonl:3: no id. Each row needs id.\nerror: not written\n")
    assert of_state(small(), MISSING) == {cell for cell in cells(small()) if cell.run == RUN}
    assert reasons(small()) == [MISSING, ("score", "error: translations.jsonl:3: no id. Each row needs id.")]
    log.write_text("Traceback (most recent call last):\n  File x\nRuntimeError: CUDA out of memory\n")
    assert reasons(small()) == [MISSING, ("score", "RuntimeError: CUDA out of memory")]
    log.write_text("error: of another person, \x1b[2J which would clear the terminal\n")
    assert reasons(small())[1][1] == "error: of another person, U+001B[2J which would clear the terminal"


def test_a_retraining_that_fails_is_told_though_the_old_adapter_is_there(small, done):
    log = Path("results/demo/logs/train/en-zh.llada-tiny.seed1.log")
    log.write_text("error: disk: No space left on device.\n")
    changed = ("train", "training.lora.rank: 8 → 16")
    assert reasons(small(**RANK)) == [STALE, ("train", "error: disk: No space left on device."), changed]
    os.utime(log, (1, 1))  # of an earlier try
    assert reasons(small(**RANK)) == [STALE, changed]


def test_what_another_config_makes_of_the_cells(small):
    """No results are looked at, and a cell stays the same that another set lists first."""
    matrix = {**SMALL["matrix"], "seeds": [1, 3], "methods": ["oracle", "ratio", "ev"]}
    studies = {"mine": {"methods": ["ev_fit"], "columns": ["comet"], "orders": ["med"], "steps": [32]}}
    over = {**GRID, "matrix": matrix, "results": "results/other", "tables": {"studies": ["mine"]}, "studies": studies}
    after = small(**over)
    found = {one.cell: one for one in against(small(), after)}
    line = Cell(RUN, "grammar", "ev_fit", "med", 32)
    assert sets_of(after.experiment).home[line].name == "mine" and found[line].state == DONE
    assert [reason.text for reason in found[EV].reasons] == ["methods.ev.ratios: [0.55,0.62,0.71,0.8,1.0] → [0.6,0.8]"]
    assert {cell for cell, one in found.items() if one.state == STALE} == {EV}
    assert {cell.run.seed for cell, one in found.items() if one.state == MISSING} == {3}


def test_the_papers_matrix_is_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paper = fake_chain.write(jobs_of({}))
    start = time.process_time()
    assert {one.state for one in Audit(paper).cells()} == {one.state for one in Audit(paper).all()} == {DONE}
    assert time.process_time() - start < 5


def test_a_purged_file_that_nothing_needs_is_told(small, done):
    """Weights on a scratch disk, rows that are scored: finished sets stay finished."""
    (SET.parent / "adapter/adapter_model.safetensors").unlink()
    (SET / "translations.jsonl").unlink()
    assert set(states(small()).values()) == {DONE}
    told = {(one.job.rule, reason.text) for one in Audit(small()).all() for reason in one.reasons}
    assert told == {("train", UNNEEDED), ("translate", UNNEEDED)}


def test_a_purged_file_that_a_new_cell_needs_is_missing(small, done):
    """Other cells of its set stay done."""
    (SET.parent / "adapter/adapter_model.safetensors").unlink()
    wider = small(matrix={**SMALL["matrix"], "methods": ["oracle", "ratio", "ev", "ev_fit", "ev_sum"]})
    assert reasons(wider, Cell(RUN, "grammar", "ev_sum", "med", 32)) == [
        MISSING,
        ("train", "no adapter_model.safetensors"),
    ]
    assert reasons(wider) == [DONE]
