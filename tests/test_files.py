"""Files are written whole or not at all, and what cannot be read is named with its line."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley import files
from entropy_valley.errors import InputError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(values)
def test_canonical_text_is_a_fixed_point_and_names_the_value(value):
    text = files.canonical(value)
    assert files.canonical(json.loads(text)) == text
    assert files.digest(value) == files.digest(json.loads(text))


@given(st.lists(values, max_size=4))
def test_rows_have_the_digest_of_their_list(rows):
    assert files.rows_digest(iter(rows)) == files.digest(rows)


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_matter(mapping):
    assert files.digest(mapping) == files.digest(dict(reversed(mapping.items())))


def test_a_failed_block_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "table.csv"
    files.write_text(path, "old")
    with pytest.raises(RuntimeError), files.atomic(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "scores.jsonl"
    files.write_jsonl(path, [{"id": "1"}])

    def until_it_is_full():
        yield {"id": "2"}
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=f"No space left.*{path}"):
        files.write_jsonl(path, until_it_is_full())
    assert files.read_jsonl(path) == [{"id": "1"}]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_script_says_a_full_disk_in_one_line():
    script = "from entropy_valley import errors; errors.run(lambda: open('/dev/full', 'w', buffering=1).write('x\\n'))"
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert finished.returncode == 1
    assert "No space left on device. Free space" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_script_says_bad_input_in_one_line(tmp_path):
    script = "import sys; from entropy_valley import errors, files; errors.run(lambda: files.read_lines(sys.argv[1]))"
    finished = subprocess.run([sys.executable, "-c", script, tmp_path / "x"], capture_output=True, text=True)
    assert finished.returncode == 2
    assert finished.stderr.startswith(f"error: {tmp_path / 'x'}: file not found.")
    assert finished.stderr.count("\n") == 1


def test_a_new_file_has_the_usual_permissions(tmp_path):
    files.write_text(tmp_path / "new", "")
    (tmp_path / "usual").touch()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_what_is_written_is_read_back(tmp_path):
    rows = [{"id": "1", "source": "Grüße\u2028", "target": "你好"}, {"id": "2", "source": "a\nb", "target": ""}]
    files.write_jsonl(tmp_path / "rows.jsonl", rows)
    assert files.read_jsonl(tmp_path / "rows.jsonl", ("id", "source", "target")) == rows
    files.write_json(tmp_path / "one.json", rows)
    assert files.read_json(tmp_path / "one.json") == rows


@pytest.mark.parametrize(
    ("content", "place", "problem"),
    [
        (b'{"id": "1"}\n\n{"id": "2"}\n', ":2", "not JSON"),
        (b'{"id": "1"}\n{"id": \n', ":2", "not JSON"),
        (b'{"id": "1"}\n["id"]\n', ":2", "no id"),
        (b'{"id": "1"}\n{"name": "2"}\n', ":2", "no id"),
        (b'{"id": "1"}\n{"id": "\xff"}\n', ":2", "not UTF-8 (byte 0xff)"),
        (b"", "", "file is empty"),
        (None, "", "file not found"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path, content, place, problem):
    path = tmp_path / "rows.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        files.read_jsonl(path, ("id",))
    assert caught.value.place == f"{path}{place}"
    assert caught.value.problem.startswith(problem)
    assert caught.value.remedy


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_json_is_not_written(tmp_path, value):
    for write in (files.write_json, lambda path, row: files.write_jsonl(path, [row]), lambda _, row: files.digest(row)):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write(tmp_path / "rows", {"score": value})
    assert not [*tmp_path.iterdir()]


def test_a_name_that_is_not_utf8_is_one_line(tmp_path):
    script = "import sys; from entropy_valley import errors, files; errors.run(lambda: files.write_json(*sys.argv[1:]))"
    environment = os.environ | {"PYTHONUTF8": "0", "LC_ALL": "C"}
    command = [sys.executable, "-c", script, tmp_path / "out.json", "Grüße"]
    finished = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert finished.returncode == 2 and finished.stderr.count("\n") == 1
    assert "cannot be written as utf-8. Give the file another name, or unset PYTHONUTF8" in finished.stderr


def test_text_files_of_other_systems(tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes("\ufeffone\r\ntwo\r\n".encode())
    assert files.read_lines(path) == ["one", "two"]


def test_a_files_digest_is_of_its_bytes(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"x" * 100_000)
    other.write_bytes(b"x" * 100_000)
    assert files.file_digest(one) == files.file_digest(other)
    other.write_bytes(b"x" * 99_999 + b"y")
    assert files.file_digest(one) != files.file_digest(other)


def test_the_cache_is_in_the_users_cache_folder_unless_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("ENTROPY_VALLEY_CACHE")
    assert files.cache_folder() == tmp_path / "entropy-valley"
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "mine"))
    assert files.cache_folder() == tmp_path / "mine"


def test_what_a_killed_writer_of_a_folder_left_is_removed(tmp_path):
    for name in (".comet.abcd1234", ".comet.part", ".comet2.abcd1234"):
        (tmp_path / name / "new").mkdir(parents=True)
    (tmp_path / ".comet.lock").touch()
    with files.atomic_folder(tmp_path / "comet") as new:
        (new / "model").touch()
    assert {path.name for path in tmp_path.iterdir()} == {"comet", ".comet.part", ".comet2.abcd1234", ".comet.lock"}
