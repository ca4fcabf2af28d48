"""FLORES from a folder, and from an archive on a server of this machine."""

import io
import shutil
import tarfile

import pytest
from fake_hub import serve

from entropy_valley import files
from entropy_valley.data import build, sources
from entropy_valley.data.sources import published
from entropy_valley.errors import InputError

COMMIT = "a" * 40
WORDS = {"deu_Latn": "Satz", "fra_Latn": "phrase", "jpn_Jpan": "文"}
FILES = {
    f"{split}/{code}.{split}": "".join(f"{word} {number}\n" for number in range(size)).encode()
    for split, size in (("dev", 997), ("devtest", 1012))
    for code, word in WORDS.items()
}
SPEC = {"direction": "de-fr", "seed": 1, "source": {"name": "flores"}, "limit": None}


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def release(monkeypatch, tmp_path):
    """A server with the archive, and an empty cache."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, written in FILES.items():
            member = tarfile.TarInfo(f"./flores200_dataset/{name}")
            member.size = len(written)
            archive.addfile(member, io.BytesIO(written))
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve({COMMIT: {"flores.tar.gz": content.getvalue()}}) as server:
        monkeypatch.setattr(published, "FLORES_ARCHIVE", f"{server.url}/someone/model/resolve/{COMMIT}/flores.tar.gz")
        (tmp_path / "flores.tar.gz").write_bytes(content.getvalue())
        monkeypatch.setattr(published, "FLORES_SHA256", files.sha256(tmp_path / "flores.tar.gz"))
        yield server


def source(**settings):
    return SPEC | {"source": {"name": "flores", **settings}}


def test_devtest_has_1012_sentences_between_any_two_languages(folder):
    rows = build.testset(source(folder=str(folder)))
    assert len(rows) == 1012 and rows[-1] == {"id": "test-001012", "source": "Satz 1011", "target": "phrase 1011"}
    given = source(folder=str(folder), split="dev", codes={"ja": "jpn_Jpan"}) | {"direction": "ja-de"}
    assert len(build.testset(given)) == 997 and build.testset(given)[0]["source"] == "文 0"
    with pytest.raises(InputError, match="has no entry of ja under `codes`"):
        build.testset(source(folder=str(folder)) | {"direction": "ja-de"})


def test_an_incomplete_copy_is_refused(folder):
    for name in ("deu_Latn", "fra_Latn"):
        (folder / f"devtest/{name}.devtest").write_text(f"one {name}\ntwo {name}\n")
    with pytest.raises(InputError, match=f"2 lines instead of 1012. An incomplete copy: delete {folder}"):
        build.testset(source(folder=str(folder)))
    with pytest.raises(InputError, match=r"fra_Latn.dev: file not found"):
        (folder / "dev/fra_Latn.dev").unlink()
        build.testset(source(folder=str(folder), split="dev"))


def test_the_release_is_fetched_once(release, folder):
    rows, served = build.testset(SPEC), release.served.total()
    assert rows == build.testset(source(folder=str(folder)))
    assert build.testset(SPEC) == rows and release.served.total() == served
    origin = build.origin(SPEC, "test")["origin"]
    names = ("deu_Latn.devtest", "fra_Latn.devtest")
    assert origin == {"files": {name: files.bytes_digest(FILES[f"devtest/{name}"]) for name in names}}


def test_a_language_that_the_release_has_not_and_another_archive(release, monkeypatch):
    with pytest.raises(InputError, match=r"devtest/xxx_Latn.devtest: file not found"):
        sources.make({"name": "flores", "codes": {"xx": "xxx_Latn"}}).origin("xx-de", "test")
    shutil.rmtree(published._flores_cache())
    monkeypatch.setattr(published, "FLORES_SHA256", "0" * 64)
    with pytest.raises(InputError, match=r"flores.tar.gz: sha256 .* instead of 000000000000. Delete this file"):
        build.testset(SPEC)
