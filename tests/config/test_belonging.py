"""Results that do not belong together: the audit says which, and no table is made of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import fake_chain
import pytest
from job_lists import jobs_of

from entropy_valley import tables
from entropy_valley.errors import InputError
from entropy_valley.results import read_record, record_path
from entropy_valley.runs.audit import STALE, Audit, versions
from entropy_valley.tables import footnotes
from entropy_valley.tables.reader import Results

ROOT = Path("results/demo")
SEED1, SEED2 = (ROOT / f"en-zh/llada-tiny/seed{seed}" for seed in (1, 2))
MINE = Path("mine.tsv")
CONFIG = {
    "matrix": {"backbones": ["llada-tiny"], "directions": ["en-zh", "zh-en"], "seeds": [1, 2]},
    "tables": {"studies": []},
    "autoregressive": {"backbones": []},
    "sources": {"mine": {"name": "tsv", "file": str(MINE), "columns": {"en": 1, "zh": 2}}},
    "directions": {"en-zh": {"tests": ["mine"]}, "zh-en": {"tests": ["mine"]}},
}


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """The jobs of a small config, all of them done; one of its test sets is a user's own file."""
    monkeypatch.chdir(tmp_path)
    MINE.write_text("A cat.\t一只猫。\n", encoding="utf-8")
    return fake_chain.write(jobs_of(CONFIG, "config/demo.yaml"))


def copy(old, new):
    """Copy a folder over another, or a file with its record over one of the same name."""
    if old.is_dir():
        shutil.copytree(old, new, dirs_exist_ok=True)
    else:
        shutil.copy2(old, new)
        shutil.copy2(record_path(old), record_path(new))


def again(jobs, path):
    """Make a result again, with another content."""
    fake_chain.make(jobs.by_output[str(path)], content="other")


def ancestry(jobs, table="tables/coverage", root=ROOT):
    """What a table is made of; an InputError where it is refused."""
    inputs = tables.configured(jobs.experiment)[table].inputs()
    return Results(jobs.experiment, root, [str(root / Path(path).relative_to(ROOT)) for path in inputs]).ancestry


def stale(jobs):
    """The rules of the jobs that are not as their records say, and why."""
    audit = Audit(jobs)
    return {(job.rule, reason.text) for job in jobs.all for reason in audit.job(job).reasons if reason.state == STALE}


def test_results_that_belong_together(jobs):
    assert stale(jobs) == set()
    made_by = ancestry(jobs)
    assert {"score", "translate", "tokens", "train", "testset", "corpus"} <= made_by.codes.keys()
    assert list(footnotes.made_by(made_by)) == []


MANIPULATIONS = {
    "scores of another seed": lambda _: copy(SEED2 / "matrix/scores.jsonl", SEED1 / "matrix/scores.jsonl"),
    "a set of another seed": lambda _: copy(SEED1 / "matrix", SEED2 / "matrix"),
    "the adapter of another seed": lambda _: copy(SEED1 / "adapter", SEED2 / "adapter"),
    "a run as another seed": lambda _: copy(SEED1, SEED2),
    "tokens of another direction": lambda _: copy(
        ROOT / "zh-en/llada-tiny/tokens/mine.jsonl", ROOT / "en-zh/llada-tiny/tokens/mine.jsonl"
    ),
    "one cell's rows over another's": lambda _: (SEED1 / "matrix/translations.jsonl").write_text("ev's\n"),
    "older scores": lambda jobs: again(jobs, SEED1 / "matrix/translations.jsonl"),
    "older translations": lambda jobs: again(jobs, SEED1 / "adapter/adapter.json"),
    "older adapters": lambda jobs: again(jobs, ROOT / "corpus/en-zh/train.jsonl"),
    "an older test set": lambda jobs: again(jobs, ROOT / "corpus/en-zh/test/mine.jsonl"),
    "an edited corpus": lambda _: MINE.write_text("A dog.\t一只狗。\n", encoding="utf-8"),
}


@pytest.mark.parametrize("kind", MANIPULATIONS)
def test_what_a_table_refuses_is_stale_in_the_audit(jobs, kind):
    MANIPULATIONS[kind](jobs)
    with pytest.raises(InputError) as error:
        ancestry(jobs)
    assert error.value.problem in {text for _, text in stale(jobs)}


EDITS = {  # a table, and a file that it reads
    "rows of scores": ("tables/main", SEED1 / "matrix/scores.jsonl"),
    "rows of translations": ("tables/main", SEED1 / "matrix/translations.jsonl"),
    "a header of scores": ("tables/main", SEED1 / "matrix/scores.json"),
    "a header of translations": ("tables/main", SEED1 / "matrix/translations.json"),
    "token counts": ("tables/coverage", ROOT / "en-zh/llada-tiny/tokens/mine.jsonl"),
    "diagnostics": ("figures/entropy_valley", SEED1 / "diagnostics.json"),
    "a test set": ("tables/coverage", ROOT / "corpus/en-zh/test/mine.jsonl"),
    "the file of an adapter": ("tables/hyperparams", SEED2 / "adapter/adapter.json"),
    "a record": ("tables/hyperparams", SEED2 / "adapter/adapter.made.json"),
    "the numbers of another table": ("tables/paper_comparison", ROOT / "tables/main.csv"),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_that_keeps_the_size_is_refused_and_stale(jobs, what):
    table, path = EDITS[what]
    ancestry(jobs, table)
    content = path.read_text()
    place = content.index("results")  # a text of each of these files
    path.write_text(f"{content[:place]}resulst{content[place + 7 :]}")
    with pytest.raises(InputError, match=rf"{path.name}.* was edited: its digest is .* was written\. ") as error:
        ancestry(jobs, table)
    assert any(error.value.problem in text and path.name in text for _, text in stale(jobs))


def test_a_copy_is_told_with_the_place_it_is_from(jobs):
    MANIPULATIONS["scores of another seed"](jobs)
    assert ("score", f"is a copy of {SEED2}/matrix/scores.jsonl") in stale(jobs)


def test_a_folder_of_results_may_be_moved(jobs):
    ROOT.rename("results/moved")
    assert ancestry(jobs, "tables/main", Path("results/moved")).bare == []


def test_the_code_that_made_results(jobs):
    """A set whose job ran with edited code, and an adapter without a record, are told below the table."""
    header = SEED1 / "matrix/translations.json"
    record = read_record(header)
    replace(record, facts=record.facts | {"codes": ["e" * 32]}).write(header)
    (SEED2 / "adapter/adapter.made.json").unlink()
    code, bare = footnotes.made_by(ancestry(jobs))
    assert "rule translate were made by 2 versions of the code" in code and "eeeeeeee (1)" in code
    assert "3 (en-zh/llada-tiny/seed2/adapter/adapter.json, " in bare
    audit = Audit(jobs)
    assert list(footnotes.made_by(versions(map(audit.job, jobs.all)))) == [code]
