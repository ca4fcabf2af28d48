"""Every table, figure and page of a finished run, as they were before; and their numbers again, in other words."""

from __future__ import annotations

from types import SimpleNamespace

import finished
import pytest

from entropy_valley import tables
from entropy_valley.errors import InputError
from entropy_valley.verification import Folder, sets, verify


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return finished.Run(tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def made(run):
    return finished.make_all(run)


GOLDEN = finished.golden()


@pytest.mark.parametrize("name", GOLDEN)
def test_a_file_is_as_it_was(made, name):
    assert made[name] == GOLDEN[name]


def test_every_report_and_layout_is_there(run, made):
    assert made.keys() >= GOLDEN.keys()  # what a new table prints is kept by the next run of finished.py
    assert {report.key for report in tables.configured(run.experiment).values()} == tables.REPORTS.keys()


def test_a_comet_checkpoint_that_is_named_must_be_there(run):
    with pytest.raises(InputError, match=r"elsewhere: file not found"):
        verify(run.root, run.root / "elsewhere")


def test_bleu_whose_tokenizer_is_not_installed_is_not_checkable(monkeypatch):
    def missing(**_):
        raise RuntimeError("\nJapanese tokenization requires extra dependencies.\n")

    monkeypatch.setattr("sacrebleu.metrics.BLEU", missing)
    params = {"comet": {}, "bleu": {}, "target_language": "ja"}
    scored = sets.Scored(SimpleNamespace(records={"set/scores.json": {"params": params}}), "set")
    assert scored.bleu.reason == "BLEU into 'ja': Japanese tokenization requires extra dependencies."


def test_results_within_others_are_results_of_their_own(run, made, tmp_path):
    """As results/demo in results."""
    (tmp_path / "results").mkdir()
    for name in ("demo", "mine"):
        (tmp_path / "results" / name).symlink_to(run.root)
    with pytest.raises(InputError, match=r"no records of results\. Name the folder .*, such as \S+/demo, \S+/mine\."):
        Folder(tmp_path / "results")
    with pytest.raises(InputError, match=r"/tables: has no records of results"):
        Folder(run.root / "tables")
    records = Folder(run.root).records
    (run.root / "demo/tables").mkdir(parents=True)
    (run.root / "demo/tables/main.made.json").write_text("{}")
    inside = Folder(run.root)
    assert inside.others == ["demo"] and inside.records == records
