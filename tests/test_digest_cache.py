"""Digests of large files are computed once, and again when a file is not the one they are of."""

from __future__ import annotations

import os
import shutil

import pytest

from entropy_valley import digest_cache, files, provenance


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a large file, and a cache of its own."""
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "checkpoint"
    path.mkdir()
    (path / "weights").write_bytes(b"one")
    return path


@pytest.fixture
def computed(monkeypatch):
    """The files that were read for their digest."""
    read, compute = [], files.file_digest
    monkeypatch.setattr(files, "file_digest", lambda path: read.append(path.name) or compute(path))
    return read


def digest(folder):
    return digest_cache.remembered_digest(folder / "weights")


def test_a_digest_is_kept_beside_the_file_for_every_machine(folder, computed, monkeypatch, tmp_path):
    said = digest(folder)
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "of another machine"))
    assert digest(folder) == said == files.bytes_digest(b"one")
    assert computed == ["weights"]
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("change", ["content", "size", "time", "inode", "damage"])
def test_what_it_kept_counts_for_the_same_file_only(folder, computed, change):
    digest(folder)
    path, about = folder / "weights", (folder / "weights").stat()
    if change == "damage":
        (kept,) = folder.glob(f".*{digest_cache.ENDING}")
        kept.write_text("{")
    elif change == "time":
        os.utime(path, ns=(0, about.st_mtime_ns + 1))
    else:
        if change == "inode":
            path.rename(folder / "old")
        path.write_bytes(b"three" if change == "size" else b"two")
        os.utime(path, ns=(0, about.st_mtime_ns + (change == "content")))
    assert digest(folder) == files.file_digest(path)
    assert computed[:2] == ["weights", "weights"]


def test_a_copy_is_read_again(folder, computed, tmp_path):
    digest(folder)
    copy = shutil.copytree(folder, tmp_path / "copy")
    digest(copy)
    assert computed == ["weights", "weights"]


def test_where_the_folder_cannot_be_written_to_the_users_cache_has_it(folder, computed, tmp_path, monkeypatch):
    write = files.write_json

    def refusing(path, value):
        if path.parent == folder:
            raise PermissionError(13, "Permission denied", str(path))
        write(path, value)

    monkeypatch.setattr(files, "write_json", refusing)
    assert digest(folder) == digest(folder)
    assert computed == ["weights"]
    assert [path.name for path in folder.iterdir()] == ["weights"]
    assert list((tmp_path / "cache/digests").iterdir())


def test_no_record_of_a_folder_names_what_is_kept_there(folder):
    digest(folder)
    with provenance.made("pretrain", {}, [], [folder / "weights"], whole_folder=True) as record:
        pass
    assert set(record.outputs) == {"weights"}
