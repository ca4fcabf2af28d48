"""Files are written whole or not at all, and what cannot be read is named with its line."""

import errno
import json
import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley import files
from entropy_valley.errors import InputError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.lists(values, max_size=3))
def test_equal_values_have_equal_text_and_digests(rows):
    text = files.canonical(rows)
    assert files.canonical(json.loads(text)) == text
    assert files.digest({"a": rows, "b": 1}) == files.digest({"b": 1, "a": rows})


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
    ("content", "place", "problem", "remedy"),
    [
        (b'{"id": "1"}\n\n{"id": "2"}\n', ":2", "not JSON", "Correct it, or fetch or make it again"),
        (b'{"id": "1"}\n{"id": \n', ":2", "not JSON", "Correct it, or fetch or make it again"),
        (b'{"id": "1"}\n["id"]\n', ":2", "no id", "Each row needs id"),
        (b'{"id": "1"}\n{"name": "2"}\n', ":2", "no id", "Each row needs id"),
        (b'{"id": "1"}\n{"id": "\xff"}\n', ":2", "not UTF-8 (byte 0xff)", "Convert"),
        (b"", "", "file is empty", "Fill it"),
        (None, "", "file not found", "Check the path"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path, content, place, problem, remedy):
    path = tmp_path / "rows.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        files.read_jsonl(path, ("id",))
    assert caught.value.place == f"{path}{place}"
    assert caught.value.problem.startswith(problem)
    assert caught.value.remedy.startswith(remedy)


def test_what_is_no_json_is_not_written(tmp_path):
    for write in (files.write_json, lambda path, row: files.write_jsonl(path, [row]), lambda _, row: files.digest(row)):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write(tmp_path / "rows", {"score": math.nan})
    assert not [*tmp_path.iterdir()]


def test_the_cache_is_in_the_users_cache_folder_unless_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("ENTROPY_VALLEY_CACHE")
    assert files.cache_folder() == tmp_path / "entropy-valley"
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "mine"))
    assert files.cache_folder() == tmp_path / "mine"
