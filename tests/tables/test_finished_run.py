"""Every table, figure and page of a finished run, as they were before; and their numbers again, in other words."""

from __future__ import annotations

from types import SimpleNamespace

import finished
import numpy as np
import pytest

from entropy_valley import tables
from entropy_valley.errors import InputError
from entropy_valley.verification import Folder, Report, sets, verify
from entropy_valley.verification.cells import Table, paired, summary
from entropy_valley.verification.folder import Unchecked


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


def test_every_number_follows_from_the_rows(run, made):
    _, report = verify(run.root)
    assert [*report.unchecked["tables/corpus.csv"]] == ["training pairs that are not among the results"]
    shown = ("tables/", "figures/")
    assert [one for one in report.differences if one.part.startswith(shown)] == []
    assert sum(count for part, count in report.same.items() if part.startswith(shown)) > 5000


def test_a_comet_checkpoint_that_is_named_must_be_there(run):
    with pytest.raises(InputError, match=r"elsewhere: file not found"):
        verify(run.root, run.root / "elsewhere")


def test_a_p_value_is_compared_by_its_digits_however_small_it_is():
    how = {"resamples": 100, "seed": 0, "generator": "pcg64", "cohen": "sample", "wilcoxon_zeros": "pratt"}
    p = paired(np.linspace(0.1, 0.3, 200), np.zeros(200), how)["wilcoxon_p"]
    assert p < 1e-30
    report = Report()
    for stored in (f"{p:.10g}", "4.1e-18"):
        report.compare("tables/main.csv", "tables/main.csv", "row 2, wilcoxon_p", stored, p)
    assert report.same.total() == 1 and [one.stored for one in report.differences] == ["4.1e-18"]


def test_bleu_whose_tokenizer_is_not_installed_is_not_checkable(monkeypatch):
    def missing(**_):
        raise RuntimeError("\nJapanese tokenization requires extra dependencies.\n")

    monkeypatch.setattr("sacrebleu.metrics.BLEU", missing)
    params = {"comet": {}, "bleu": {}, "target_language": "ja"}
    scored = sets.Scored(SimpleNamespace(records={"set/scores.json": {"params": params}}), "set")
    assert scored.bleu.reason == "BLEU into 'ja': Japanese tokenization requires extra dependencies."


def test_of_a_metric_that_cannot_be_computed_again_the_runs_are_counted(run, made):
    table = Table(Folder(run.root), "tables/main.made.json")
    rows = [*summary(table, table.cells, ["mine"], lambda *_: Unchecked("a metric of the user's own"))]
    assert [row["runs"] for row in rows] == [row["runs"] for row in summary(table, table.cells, ["bleu"])]
    assert rows and all(isinstance(row["mean"], Unchecked) for row in rows)


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
