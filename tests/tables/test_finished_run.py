"""Every table, figure and page of a finished run, as they were before; and their numbers again, in other words."""

from __future__ import annotations

import finished
import pytest

from entropy_valley import tables
from entropy_valley.verification import verify


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
    (run.root / "tables/corpus.csv").unlink()  # the training pairs are not kept
    _, report = verify(run.root)
    shown = ("tables/", "figures/")
    assert [one for one in report.differences if one.part.startswith(shown)] == []
    assert sum(count for part, count in report.same.items() if part.startswith(shown)) > 5000
