import sys

import pytest
from tiny_checkpoints import checkpoints, one_thread  # noqa: F401 - fixtures

from entropy_valley.experiment import cli


@pytest.fixture
def status_of(monkeypatch):
    """Run `entropy-valley` with some arguments in this process; its exit status."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["entropy-valley", *map(str, arguments)])
        try:
            cli.main()
        except SystemExit as ended:
            return ended.code
        return 0

    return run
