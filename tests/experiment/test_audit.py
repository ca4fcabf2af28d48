"""The audit: the state of every cell, and the reason for it, from files, records and logs alone."""

from __future__ import annotations

import os
from pathlib import Path

import fake_chain
import pytest

from entropy_valley import files
from entropy_valley.engine.ledger import Ledger
from entropy_valley.experiment import load_files
from entropy_valley.experiment.audit import Audit
from entropy_valley.experiment.findings import BEGUN, DAMAGED, DONE, FAILED, MISSING, STALE
from entropy_valley.experiment.matrix import Cell, Run, all_cells

ROOT = Path(__file__).parents[2]
SMALL = {
    "matrix": {
        "backbones": ["llada-tiny"],
        "directions": ["en-zh", "en-de"],
        "seeds": [1, 2],
        "methods": ["oracle", "ratio", "ev", "cal"],
    },
    "tables": {"studies": []},
}
EV = Cell(Run("en-zh", "llada-tiny", 1), "grammar", "ev", "med", 32)


@pytest.fixture
def small(tmp_path, load, monkeypatch):
    """A small config's results, all done, and the same config with something laid over it."""
    monkeypatch.chdir(tmp_path)

    def loaded(**over):
        return load({**SMALL, **over}, "config/demo.yaml")

    return loaded


@pytest.fixture
def chain(small):
    return fake_chain.write(small())


def states(experiment):
    return {one.cell: one.state for one in Audit(experiment).cells()}


def of_state(experiment, state):
    return {cell for cell, found in states(experiment).items() if found == state}


def reason(experiment, cell=EV):
    """The state of a cell, and rule and reason of its first finding."""
    found = Audit(experiment).cell(cell)
    first = found.reasons[0]
    return found.state, first.result.rule, first.why or [one.key for one in first.changed]


def test_nothing_is_there_at_first(small):
    experiment = small()
    assert list(states(experiment)) == all_cells(experiment)
    assert set(states(experiment).values()) == {MISSING}
    assert reason(experiment) == (MISSING, "testset", "not made yet")


def test_all_is_done(small, chain):
    assert set(states(small()).values()) == {DONE}
    assert all(one.recorded for one in Audit(small()).cells())


def test_another_grid_is_stale(small, chain):
    """Reproduced: the audit said that all was done."""
    other = small(length_methods={"ev": {"ratios": {"en-zh": [0.6, 0.8]}}})
    assert of_state(other, STALE) == {
        cell for cell in all_cells(other) if cell.run.direction == "en-zh" and cell.method == "ev"
    }
    assert reason(other) == (STALE, "canvas", ["selector.ratios"])


def test_another_rank_is_stale(small, chain):
    """Reproduced, as above: and with all that is decoded by these adapters."""
    other = small(training={"lora": {"rank": 16}})
    assert of_state(other, STALE) == set(all_cells(other))
    assert reason(other) == (STALE, "train", ["training.lora.rank"])


def test_an_empty_file_is_damage(small, chain):
    """Reproduced, as above."""
    Path(EV.scores("results/demo")).write_text("")
    assert of_state(small(), DAMAGED) == {EV}
    assert reason(small()) == (DAMAGED, "score", "scores.json is empty")


def test_what_is_scored_otherwise_is_stale_in_its_scores_alone(small, chain):
    other = small(scoring={"bleu": {"tokenize": "intl"}})
    assert reason(other)[:2] == (STALE, "score")


@pytest.mark.parametrize(
    ("name", "rule"), [("decoding.json", "decode"), ("scores.jsonl", "score"), ("../canvas.jsonl", "canvas")]
)
def test_a_file_that_is_lost_is_damage(small, chain, name, rule):
    (Path(EV.folder("results/demo")) / name).unlink()
    assert reason(small()) == (DAMAGED, rule, f"no {Path(name).name}")


def test_a_file_of_another_size_or_content_is_damage(small, chain):
    path = Path(EV.folder("results/demo")) / "hypotheses.jsonl"
    before = path.read_text()
    path.write_text(before[::-1])
    assert of_state(small(), DAMAGED) == {EV}
    path.write_text(before * 2)
    size = len(before.encode())
    assert reason(small()) == (DAMAGED, "decode", f"hypotheses.jsonl has {2 * size} bytes; {size} were written")


def test_adapters_of_another_content_are_damage(small, chain):
    """All tensors times three under the old adapter.json: the size says nothing."""
    path = Path("results/demo/en-zh/llada-tiny/seed1/adapter/adapter_model.safetensors")
    path.write_text(path.read_text()[::-1])
    assert of_state(small(), DAMAGED) == {cell for cell in all_cells(small()) if cell.run == EV.run}


def test_translations_that_are_made_again_leave_their_scores_behind(small, chain):
    fake_chain.make(chain.hypotheses(EV), content="other")
    found = ("score", "hypotheses.jsonl was made again after it")
    assert reason(small()) == (STALE, *found)
    record = Path(EV.folder("results/demo")) / "hypotheses.made.json"
    os.utime(record, (1, 1))
    assert reason(small()) == (DAMAGED, "score", "it was made from another hypotheses.jsonl than is there")


def test_a_moved_adapter_or_corpus_leaves_finished_cells_done(small, chain):
    for path in ("en-zh/llada-tiny/seed1/adapter", "corpus/en-zh", "backbones/llada-tiny"):
        Path("results/demo", path).rename(Path("elsewhere").with_suffix(f".{len(path)}"))
    assert set(states(small()).values()) == {DONE}


def test_what_is_left_to_do_of_a_missing_cell_begins_at_the_first_that_lacks(small, chain):
    Path(EV.scores("results/demo")).unlink()
    (Path(EV.folder("results/demo")) / "scores.jsonl").unlink()
    assert reason(small())[:2] == (MISSING, "score")
    Path(EV.folder("results/demo"), "../canvas.jsonl").unlink()
    assert reason(small())[:2] == (MISSING, "canvas")


def test_a_job_that_ended_with_an_error_has_failed(small, chain):
    """Of no other job is it known: a log without an error may be of one that runs, or was killed."""
    for name in ("scores.json", "scores.jsonl"):
        Path(EV.folder("results/demo"), name).unlink()
    log = Path(chain.scores(EV).log)
    log.write_text("50 %\n")
    assert reason(small()) == (MISSING, "score", BEGUN)
    log.write_text("50 %\nerror: hypotheses.jsonl:3: no id. Each row needs id.\n")
    assert of_state(small(), FAILED) == {EV}
    assert reason(small()) == (FAILED, "score", "error: hypotheses.jsonl:3: no id. Each row needs id.")
    log.write_text("Traceback (most recent call last):\n  File x\nRuntimeError: CUDA out of memory\n")
    assert reason(small()) == (FAILED, "score", "RuntimeError: CUDA out of memory")
    # an exception in a user's class, left to the job that needs it: this one has done the rest
    log.write_text(
        f"Traceback (most recent call last):\n  File x\ncanvas: KeyError\nscore: {Ledger(9, 9).text()}; 2 s\n"
    )
    assert reason(small()) == (MISSING, "score", BEGUN)


def test_a_job_that_did_the_work_of_many_cells_has_failed_once_for_all(small, chain):
    lost = [cell for cell in all_cells(small()) if cell.run == EV.run]
    for cell in lost:
        for name in ("hypotheses.jsonl", "decoding.json", "scores.jsonl", "scores.json"):
            Path(cell.folder("results/demo"), name).unlink()
    old, new = (f"results/demo/logs/inference/en-zh.llada-tiny.seed1.1of1.2026{day}-1.log" for day in (1101, 1102))
    files.write_text(old, "error: of an earlier session.\n")
    files.write_text(old.replace(".log", ".1.log"), "error: of the first attempt.\n")
    files.write_text(new, "50 %\n")
    files.write_text(new.replace(".log", ".1.log"), "error: of the first attempt.\n")
    assert of_state(small(), MISSING) == set(lost)
    files.write_text(new, "error: CUDA out of memory.\n")
    found = [one for one in Audit(small()).cells() if one.state == FAILED]
    assert [one.cell for one in found] == lost
    assert {(reason.result.rule, reason.why, reason.result.log) for one in found for reason in one.reasons} == {
        ("inference", "error: CUDA out of memory.", new)
    }
    assert reason(small(training={"lora": {"rank": 16}}))[0] == FAILED


def test_a_retraining_that_fails_is_told_though_the_old_adapter_is_there(small, chain):
    other = small(training={"lora": {"rank": 16}})
    log = Path("results/demo/logs/train/en-zh.llada-tiny.seed1.log")
    log.write_text("error: disk: No space left on device.\n")
    assert of_state(other, FAILED) == {cell for cell in all_cells(other) if cell.run == EV.run}
    os.utime(log, (1, 1))  # of an earlier try
    assert not of_state(other, FAILED)


def test_results_without_records_are_done_and_counted(small):
    fake_chain.write(small(), records=False)
    found = Audit(small(length_methods={"ev": {"ratios": {"en-zh": [0.6, 0.8]}}})).cells()
    assert {one.state for one in found} == {DONE}
    assert not any(one.recorded for one in found)


def test_adapters_without_records_say_their_params_themselves(small):
    chain = fake_chain.write(small(), records=False)
    for seed in (1, 2):
        adapter = chain.adapter(Run("en-zh", "llada-tiny", seed))
        files.write_json(f"{adapter.folder}/adapter.json", {"spec": {**adapter.spec, "of_old": 1}})
    assert set(states(small()).values()) == {DONE}
    other = small(training={"lora": {"rank": 16}})
    assert of_state(other, STALE) == {cell for cell in all_cells(other) if cell.run.direction == "en-zh" and cell.order}


def test_a_broken_record_is_damage(small, chain):
    record = Path(EV.folder("results/demo")) / "hypotheses.made.json"
    record.write_text('{"rule": "decode"')
    assert reason(small()) == (DAMAGED, "decode", "its record hypotheses.made.json cannot be read")


def test_the_papers_chain_is_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paper = load_files([ROOT / "config/studies.yaml", ROOT / "config.yaml"])
    fake_chain.write(paper)
    assert set(states(paper).values()) == {DONE}
