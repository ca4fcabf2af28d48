"""Ten times the paper's matrix is planned in a minute and runs through, with jobs that only touch their outputs.

The run takes most of an hour on two cores, so it is no part of `make test`; `make nightly` has it.
"""

from __future__ import annotations

import os
import re
import resource

import pytest
import yaml

from entropy_valley.experiment import base_files, load_files
from entropy_valley.reporting import reports

TEN_TIMES = {
    "check": False,  # it is run where there is no GPU
    "matrix": {"seeds": list(range(1, 33)), "steps": [32, 64], "orders": ["med", "random"]},
}
SECONDS = 60  # of one core, for a dry run
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("ENTROPY_VALLEY_NIGHTLY" not in os.environ, reason="ENTROPY_VALLEY_NIGHTLY is not set"),
]


def planned(workspace, over=None):
    """How many jobs a dry run plans."""
    return int(re.search(r"^(\d+) jobs:", workspace.run("-n", over=over), re.MULTILINE)[1])


def used():
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def test_ten_times_the_papers_matrix_is_planned_in_a_minute_and_runs_through(paper):
    least, before = 10 * planned(paper), used()
    assert planned(paper, TEN_TIMES) >= least
    assert used() - before < SECONDS
    paper.run("--cores", "4", "--quiet", "all", over=TEN_TIMES)
    config = paper.folder / "ten.yaml"
    config.write_text(yaml.safe_dump(TEN_TIMES))
    experiment = load_files([*base_files(paper.folder), config])
    wanted = reports.targets(experiment, reports.configured(experiment))
    assert not [path for path in wanted if not (paper.folder / path).is_file()]
    assert "Nothing to be done" in paper.run("-n", over=TEN_TIMES)
