"""Ten times the paper's matrix is planned in 20 seconds of one core, and runs through with jobs that only make files.

The run takes most of an hour on two cores, so it is no part of `make test`; `make nightly` has it.
"""

from __future__ import annotations

import os
import re
import resource

import pytest
import yaml

from entropy_valley.config import base_files, load_files
from entropy_valley.runs.inventory import Inventory

TEN_TIMES = {
    "check": False,  # it is run where there is no GPU
    "matrix": {"seeds": list(range(1, 33)), "steps": [32, 64], "orders": ["med", "random"]},
}
SECONDS = 20  # of one core, for a dry run
pytestmark = pytest.mark.slow


def planned(workspace, over=None):
    """How many sets of cells a dry run plans, and how many cells."""
    sets, cells = re.search(r"^translate +(\d+) +([\d,]+) ", workspace.run("-n", over=over), re.MULTILINE).groups()
    return int(sets), int(cells.replace(",", ""))


def used():
    """The processor seconds of all processes that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def test_ten_times_the_papers_matrix_is_planned_in_twenty_seconds(paper):
    _, least = planned(paper)
    before = used()
    sets, cells = planned(paper, TEN_TIMES)
    assert used() - before < SECONDS
    assert cells >= 10 * least and sets > 400


@pytest.mark.skipif("ENTROPY_VALLEY_NIGHTLY" not in os.environ, reason="ENTROPY_VALLEY_NIGHTLY is not set")
def test_it_runs_through(paper):
    paper.run("--cores", "4", "--quiet", "all", over=TEN_TIMES)
    config = paper.folder / "ten.yaml"
    config.write_text(yaml.safe_dump(TEN_TIMES))
    experiment = load_files([*base_files(paper.folder), config])
    outputs = [path for job in Inventory(experiment).all() for path in job.outputs]
    assert not [path for path in outputs if not (paper.folder / path).is_file()]
    assert "Nothing to be done" in paper.run("-n", over=TEN_TIMES)
