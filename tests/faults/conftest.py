"""What the trials share; their seed, and the line that counts them."""

import os
import random
from collections import Counter

import pytest
from chain import Chain

SEED = os.environ.get("ENTROPY_VALLEY_FAULT_SEED", "1")


@pytest.fixture(scope="session")
def chain(tmp_path_factory):
    return Chain(tmp_path_factory.mktemp("chain"))


@pytest.fixture
def chance(request):
    """The random numbers of this trial: the same for the same seed, whatever else runs."""
    return random.Random(f"{SEED} {request.node.name}")


def pytest_terminal_summary(terminalreporter):
    """One line with the trials of each kind; of tests without this marker, nothing."""
    names = [report.location[2] for report in terminalreporter.stats.get("passed", []) if "/faults/" in report.nodeid]
    kinds = Counter(name.partition("[")[0].removeprefix("test_").replace("_", " ") for name in names)
    if kinds:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        terminalreporter.write_line(f"{kinds.total()} trials of faults, seed {SEED}: {counts}")
