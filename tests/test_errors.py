"""How a command ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from entropy_valley import errors


def test_a_reader_that_has_gone_is_no_full_disk():
    program = "from entropy_valley import errors; errors.run(lambda: [print('line') for _ in range(99999)])"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        assert process.stderr.read() == "" and process.wait() == 1


def test_ctrl_c_is_one_line(capsys):
    def stopped():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit, match="130"):
        errors.run(stopped)
    assert capsys.readouterr().err == "stopped by Ctrl-C\n"
