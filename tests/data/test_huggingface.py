"""Data sets of a hub on this machine, downloaded by the workflow's script, and of a local copy: whole, counted, in
bounded memory."""

import io
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_hub import serve
from run_rule import run_here

from entropy_valley import files, results
from entropy_valley.data import build, sources
from entropy_valley.errors import InputError

OLD, NEW = "a" * 40, "b" * 40
SOURCE = {"name": "huggingface", "dataset": "someone/model", "subset": "zh-en"}
SHARDS = [f"zh-en/train-0000{number}-of-00003.parquet" for number in range(3)]
SPEC = {"direction": "en-zh", "seed": 1, "source": SOURCE, "train": 40, "dev": 5}


def shard(number: int, rows: int = 700) -> bytes:
    """A shard in row groups of 100."""
    pairs = [{"zh": f"句子 {number} {row} ", "en": f"sentence {number} {row}"} for row in range(rows)]
    content = io.BytesIO()
    pq.write_table(pa.table({"translation": pairs}), content, row_group_size=100)
    return content.getvalue()


RELEASED = {name: shard(number) for number, name in enumerate(SHARDS)}
OTHERS = {"zh-en/validation-00000-of-00001.parquet": shard(9, 15), "de-en/train-00000-of-00001.parquet": shard(8)}
EXPECTED = [(f"sentence {number} {row}", f"句子 {number} {row}") for number in range(3) for row in range(700)]


@pytest.fixture
def hub(reach):
    with serve({OLD: {"README.md": b"about"}, NEW: {"README.md": b"about", **RELEASED, **OTHERS}}) as server:
        reach(server.url)
        yield server


@pytest.fixture
def local(tmp_path):
    for name, content in (RELEASED | OTHERS).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return {**SOURCE, "folder": str(tmp_path)}


@pytest.fixture
def fetch(tmp_path):
    """Download what a source needs by the script of the workflow; the folder, and what it keeps of it."""

    def fetch(confirm=False, **change):
        wanted = sources.make(SOURCE | change).download
        folder, out = tmp_path / "models" / wanted.folder, tmp_path / "datasets" / f"{wanted.folder}.json"
        run_here("fetch_dataset", wanted._asdict(), (), out, {"folder": folder, "confirm": confirm})
        return folder, out

    return fetch


def pairs(**change):
    return list(sources.make(SOURCE | change).pairs("en-zh", "train", 1))


def test_a_lost_download_goes_on_and_only_the_split_is_downloaded(hub, fetch, monkeypatch):
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None, raising=False)
    hub.cut[SHARDS[2]] = 1000
    with pytest.raises(InputError, match=r"cannot be downloaded .*hf download someone/model --repo-type .*`folder`"):
        fetch()
    hub.cut.clear()
    hub.served.clear()
    folder, _ = fetch()
    assert hub.served.keys() == {SHARDS[2]}
    assert pairs(folder=str(folder), rows=2100) == EXPECTED
    assert sorted(path.name for path in folder.rglob("*.parquet")) == [name.split("/")[1] for name in SHARDS]


def test_what_is_downloaded_is_read_without_a_hub_and_the_results_say_which_commit(hub, fetch, local, tmp_path):
    folder, out = fetch()
    manifest = {"repository": "someone/model", "revision": NEW}
    manifest["files"] = {name: files.bytes_digest(content) for name, content in RELEASED.items()}
    assert files.read_json(out) == manifest
    hub.commits["c" * 40] = {name: shard(7) for name in SHARDS}  # what is published meanwhile is not read
    assert fetch() == (folder, out) and files.read_json(out) == manifest
    hub.gated = True
    outputs = {"train": tmp_path / "train.jsonl", "dev": tmp_path / "dev.jsonl", "report": tmp_path / "corpus.json"}
    run_here("corpus", SPEC, {"own": [], "dataset": [out]}, outputs, {"folder": folder, "rows": 2100})
    assert list(results.record_of(tmp_path / "train.jsonl").inputs) == [str(out)]
    assert files.read_jsonl(outputs["train"]) == build.corpus(SPEC | {"source": local})[0]


def test_a_local_copy_is_watched_and_a_download_that_changed_is_refused(hub, fetch, local):
    source = sources.make(local)
    assert source.own_files("en-zh", "train") == [f"{local['folder']}/{name}" for name in SHARDS]
    folder, _ = fetch()
    assert sources.make(SOURCE).own_files("en-zh", "train") == []
    (folder / SHARDS[0]).write_bytes(shard(5))
    with pytest.raises(InputError, match="changed since the download"):
        pairs(folder=str(folder))


def test_another_number_of_rows_is_refused_and_no_part_of_the_params(local):
    with pytest.raises(InputError, match=r"2100 rows instead of 2099.*`rows`"):
        build.corpus(SPEC | {"source": local}, rows=2099)
    with pytest.raises(InputError, match="15 rows instead of 1512"):
        test = {"direction": "zh-en", "seed": 1, "source": {**local, "split": "validation"}, "limit": 3}
        build.testset({**test, "subset": "first"}, rows=1512)
    source = sources.make({**local, "rows": 7})
    assert source.total == 7 and "rows" not in source.settings("en-zh", "train")


def test_the_hubs_own_conversion_is_read(hub, fetch):
    hub.commits[NEW] = {"zh-en/train/0000.parquet": RELEASED[SHARDS[0]]}
    folder, _ = fetch(revision="refs/convert/parquet")
    assert pairs(folder=str(folder)) == EXPECTED[:700]


def test_a_damaged_file_is_no_data_set(local, tmp_path):
    (tmp_path / SHARDS[1]).write_bytes(RELEASED[SHARDS[1]][:-50])
    with pytest.raises(InputError, match=r"data set someone/model .*: is not a data set that can be read .Parquet"):
        pairs(folder=str(tmp_path))


def test_without_a_network_the_files_to_fetch_are_named(fetch, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"cannot be downloaded .*hf download .*`folder` .*zh-en/train-\*.parquet"):
        fetch()
    with pytest.raises(InputError, match=r"is not downloaded yet.*`folder`"):
        pairs()


def test_what_a_local_copy_has_not_is_named(local):
    assert list(sources.make(local).pairs("zh-en", "train", 1)) == [pair[::-1] for pair in EXPECTED]
    with pytest.raises(InputError, match=r"no translation.fr"):
        next(sources.make(local).pairs("zh-fr", "train", 1))
    problem = r"no zh-en/test-\*.parquet.*'zh-en/test-\*.parquet'"
    with pytest.raises(InputError, match=problem):
        list(sources.make({**local, "split": "test"}).pairs("zh-en", "test", 1))


@pytest.mark.parametrize("row", [{"zh": "句子", "en": None}, {"zh": None, "en": "word"}, None])
def test_a_missing_text_is_blank_and_the_pair_is_dropped(local, tmp_path, row):
    pq.write_table(pa.table({"translation": [{"zh": "一", "en": "one"}, row]}), tmp_path / "zh-en/dev-0.parquet")
    drawn = build.testset({"direction": "en-zh", "seed": 1, "source": {**local, "split": "dev"}, "limit": None})
    assert [(one["source"], one["target"]) for one in drawn] == [("one", "一")]


def test_a_column_of_other_values_is_no_text(local, tmp_path):
    """A list of references would else become one reference, with its brackets."""
    pq.write_table(pa.table({"translation": [{"zh": "一", "en": ["eins", "zwei"]}]}), tmp_path / "zh-en/dev-0.parquet")
    with pytest.raises(InputError, match=r"translation\.en is .*, not a text\. Name the keys or columns"):
        list(sources.make({**local, "split": "dev"}).pairs("en-zh", "dev", 1))


def test_no_more_than_a_row_group_is_held(local, tmp_path):
    for number in range(3, 15):
        (tmp_path / f"zh-en/train-000{number:02}-of-00015.parquet").write_bytes(RELEASED[SHARDS[0]])
    reading = sources.make(local).pairs("en-zh", "train", 1)
    next(reading)  # imports
    tracemalloc.start()
    try:
        assert sum(1 for _ in reading) == 15 * 700 - 1
        assert tracemalloc.get_traced_memory()[1] < 500_000  # all rows take ten times that
    finally:
        tracemalloc.stop()
