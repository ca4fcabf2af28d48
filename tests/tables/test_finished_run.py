"""Every table, figure and page of a finished run, as they were before."""

from __future__ import annotations

import finished
import pytest

from entropy_valley.experiment import tables


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
