"""How a command ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from entropy_valley import errors

IMPORTS = "import sys; from entropy_valley import errors, files"


def ended(program, *arguments, **environment):
    """The exit status of a process, and what it writes to its log."""
    command, variables = [sys.executable, "-c", f"{IMPORTS}; {program}", *arguments], os.environ | environment
    process = subprocess.run(command, capture_output=True, text=True, env=variables)
    return process.returncode, process.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line():
    status, log = ended("errors.run(lambda: open('/dev/full', 'w', buffering=1).write('x\\n'))")
    assert status == 1 and log.count("\n") == 1
    assert "No space left on device. Free space" in log


def test_bad_input_is_one_line(tmp_path):
    status, log = ended("errors.run(lambda: files.read_lines(sys.argv[1]))", tmp_path / "x")
    assert status == 2 and log.count("\n") == 1
    assert log.startswith(f"error: {tmp_path / 'x'}: file not found.")


def test_a_name_that_is_not_utf8_is_one_line(tmp_path):
    program = "errors.run(lambda: files.write_json(*sys.argv[1:]))"
    status, log = ended(program, tmp_path / "out.json", "Grüße", PYTHONUTF8="0", LC_ALL="C")
    assert status == 2 and log.count("\n") == 1
    assert "cannot be written as utf-8. Give the file another name, or unset PYTHONUTF8" in log


def test_a_reader_that_has_gone_is_not_a_full_disk():
    program = f"{IMPORTS}; errors.run(lambda: [print('line') for _ in range(99999)])"
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
