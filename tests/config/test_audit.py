"""The audit: the state of every cell, and the reason for it, by a dry run, headers and logs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import fake_chain
import pytest
from job_lists import jobs_of, planned_of

from entropy_valley.experiment.config.matrix import Cell, Run, all_cells
from entropy_valley.experiment.runs import jobs
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
GRID = {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8]}}}}
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


@pytest.fixture
def done(small):
    """Its results, all done."""
    return fake_chain.write(every())


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
    assert list(states(small())) == cells(small())
    assert set(states(small()).values()) == {MISSING}
    assert reasons(small()) == [MISSING, ("corpus", "new")]


def test_all_is_done(small, done):
    assert small().all == []
    assert set(states(small()).values()) == {DONE}


def test_another_grid_is_stale_in_the_cells_that_use_it(small, done):
    """Their set is repeated, but of the other cells nothing changes."""
    other = small(**GRID)
    ours = {cell for cell in cells(other) if cell.run.direction == "en-zh" and cell.method == "ev"}
    assert of_state(other, STALE) == ours
    (state, (rule, text)) = reasons(other)
    assert (state, rule) == (STALE, "translate")
    assert text == "methods.ev.ratios: [0.55,0.62,0.71,0.8,1.0] → [0.6,0.8]"


def test_another_rank_is_stale_with_all_that_is_translated_by_these_adapters(small, done):
    other = small(**RANK)
    assert of_state(other, STALE) == set(cells(other))
    assert reasons(other) == [STALE, ("train", "training.lora.rank: 8 → 16")]


def test_what_was_not_repeated_after_its_inputs_were_is_made_from_another(small, done):
    """As after a failure: the adapter is new, its translations are not."""
    other = small(**RANK)
    again = every(**RANK).by_output
    fake_chain.make(again["results/demo/en-zh/llada-tiny/seed1/adapter/adapter.json"])
    assert reasons(other) == [STALE, ("translate", "made from another adapter")]
    fake_chain.make(again[str(SET / "translations.jsonl")])
    assert reasons(other) == [DONE]


def test_inputs_that_were_made_again_with_another_content(small, done):
    translations = done.by_output[str(SET / "translations.jsonl")]
    fake_chain.make(translations)
    assert reasons(small()) == [DONE]
    fake_chain.make(translations, content="other")
    assert reasons(small()) == [STALE, ("score", f"{SET}/scores.jsonl: translations.jsonl was made again after it")]


def test_a_new_cell_of_a_set_is_missing_and_the_others_are_done(small, done):
    other = small(matrix={**SMALL["matrix"], "methods": ["oracle", "ratio", "ev", "ev_fit", "ev_sum"]})
    assert {cell.method for cell in of_state(other, MISSING)} == {"ev_sum"}
    assert len(of_state(other, DONE)) == len(cells(small()))
    cell = Cell(RUN, "grammar", "ev_sum", "med", 32)
    assert reasons(other, cell) == [MISSING, ("translate", "not among the cells of its set yet")]


def test_a_fit_concerns_the_methods_that_use_it(small, done):
    other = small(length_methods={"ev_fit": {"pairs": 7}})
    assert {cell.method for cell in of_state(other, STALE)} == {"ev_fit"}
    fewer = {**SMALL["matrix"], "methods": ["oracle", "ratio", "ev"]}
    assert set(states(small(matrix=fewer)).values()) == {DONE}


def test_other_scores_are_stale_in_the_scores_alone(small, done):
    other = small(scoring={"bleu": {"tokenize": "intl"}})
    assert reasons(other)[:1] == [STALE] and reasons(other)[1][0] == "score"


def test_damage_is_stale(small, done):
    """A file that is cut, or has another content of the same size; a record that cannot be read, was edited, or is not
    there."""
    scores = SET / "scores.jsonl"
    content, header = scores.read_bytes(), scores.with_suffix(".json").read_bytes()
    known = bytes_digest(content)[:12]
    scores.write_bytes(b"")
    edited = f"{scores}: scores.jsonl was edited: its digest is {NOTHING}, {known} was written"
    assert reasons(small()) == [STALE, ("score", edited)]
    scores.write_bytes(content[::-1])
    assert reasons(small())[1][1].startswith(f"{scores}: scores.jsonl was edited: its digest is ")
    scores.write_bytes(content)
    scores.with_suffix(".json").write_text('{"rule": "score"')
    assert reasons(small())[1][1].startswith(f"{SET}/scores.json: is not a header of a result")
    scores.with_suffix(".json").write_bytes(header.replace(b'"rule": "score"', b'"rule": "other"'))
    assert reasons(small())[1][1].startswith(f"{SET}/scores.json: was edited: its digest is ")
    scores.with_suffix(".json").write_bytes(header)


def test_a_moved_adapter_or_corpus_leaves_finished_cells_done(small, done):
    for path in ("en-zh/llada-tiny/seed1/adapter", "corpus/en-zh", "backbones/llada-tiny.json"):
        Path("results/demo", path).rename(Path("elsewhere").with_suffix(f".{len(path)}"))
    assert set(states(small()).values()) == {DONE}


def test_what_is_left_to_do_of_a_missing_cell_begins_at_the_first_that_lacks(small, done):
    (SET / "scores.json").unlink()
    assert reasons(small()) == [MISSING, ("score", "new")]
    (SET / "scores.jsonl").unlink()
    (SET / "translations.jsonl").unlink()
    assert reasons(small()) == [MISSING, ("translate", "new")]


def test_the_error_of_a_failed_job_is_the_reason(small, done):
    """A log without an error may be of a job that runs, or was killed."""
    (SET / "scores.jsonl").unlink()
    log = Path("results/demo/logs/score/en-zh.llada-tiny.seed1.matrix.log")
    log.write_text("50 %\n")
    assert reasons(small()) == [MISSING, ("score", "new")]
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
    changed, planned = ("train", "training.lora.rank: 8 → 16"), every(**RANK)
    assert reasons(planned) == [STALE, ("train", "error: disk: No space left on device."), changed]
    os.utime(log, (1, 1))  # of an earlier try
    assert reasons(planned) == [STALE, changed]


def test_the_papers_matrix_is_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paper = jobs.Jobs(fake_chain.write(jobs_of({})).experiment, [])
    start = time.process_time()
    assert {one.state for one in Audit(paper).cells()} == {DONE}
    assert time.process_time() - start < 5


def test_a_purged_file_is_missing_only_where_a_new_cell_needs_it(small, done):
    """Weights on a scratch disk, rows that are scored: finished cells stay finished."""
    (SET.parent / "adapter/adapter_model.safetensors").unlink()
    (SET / "translations.jsonl").unlink()
    assert set(states(small()).values()) == {DONE}
    wider = every(matrix={**SMALL["matrix"], "methods": ["oracle", "ratio", "ev", "ev_fit", "ev_sum"]})
    assert reasons(wider, Cell(RUN, "grammar", "ev_sum", "med", 32)) == [MISSING, ("train", "interrupted or forced")]
    assert reasons(wider) == [DONE]
