"""How a command ends."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from entropy_valley import errors, files


@pytest.fixture
def ended(capsys):
    """The exit status of a command that does this, and what it writes to its log."""

    def run(action, *arguments):
        with pytest.raises(SystemExit) as end, errors.in_one_line():
            action(*arguments)
        return end.value.code, capsys.readouterr().err

    return run


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line(ended):
    with open("/dev/full", "wb", buffering=0) as full:
        status, log = ended(full.write, b"x")
    assert status == 1 and log.count("\n") == 1
    assert "No space left on device. Free space" in log


@pytest.mark.parametrize("kind", [errors.InputError, errors.SentenceError, errors.UserCodeError])
def test_an_error_comes_from_another_process_as_it_is(kind):
    error = pickle.loads(pickle.dumps(kind("in.txt", "sentence 1: too long", "Shorten it.")))
    assert type(error) is kind and str(error) == "in.txt: sentence 1: too long. Shorten it."
    assert copy.deepcopy(error).problem == error.problem


def test_bad_input_and_ctrl_c_are_one_line(ended, tmp_path):
    status, log = ended(files.read_lines, tmp_path / "x")
    assert status == 2 and log.count("\n") == 1
    assert log.startswith(f"error: {tmp_path / 'x'}: file not found.")

    def ctrl_c():
        raise KeyboardInterrupt

    assert ended(ctrl_c) == (130, "stopped by Ctrl-C\n")


def test_an_error_of_a_path_says_what_to_do_with_the_path(ended, tmp_path):
    file, act = tmp_path / "file", {"x/y": "Check the path", "": "Name a file, not a folder"}
    file.touch()
    for name, remedy in (act | {"file/y": "Check the path"}).items():
        status, log = ended(open, tmp_path / name)
        assert status == 1 and log.endswith(f". {remedy}, then run the same command again.\n")
    status, log = ended(os.mkdir, file)
    assert status == 1 and "File exists. Name another folder" in log


def test_a_reader_that_has_gone_is_not_a_full_disk():
    program = "from entropy_valley import errors\nwith errors.in_one_line(): [print('line') for _ in range(99999)]"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        assert process.stderr.read() == "" and process.wait() == 1


MANY = [f"other_{number}" for number in range(30)]


@pytest.mark.parametrize(
    ("name", "names", "message"),
    [
        ("mian", ["main", "cost"], "no; did you mean main? there is main, cost"),
        ("xyz", [], "no; there is none"),
        ("xyz", MANY, f"no; there is {', '.join(MANY[:8])}, … and 22 more"),
        (7, ["main"], "no; there is main"),
    ],
)
def test_an_unknown_name(name, names, message):
    assert errors.unknown(name, "no", names) == message
