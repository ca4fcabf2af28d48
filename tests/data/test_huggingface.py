"""Data sets of a hub on this machine that loses connections, and of a local copy: whole, counted, in bounded memory."""

from __future__ import annotations

import io
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_hub import serve
from run_rule import run_here

from entropy_valley import files, provenance
from entropy_valley.data import build, dataset, sources
from entropy_valley.errors import InputError

OLD, NEW = "a" * 40, "b" * 40
SOURCE = {"name": "huggingface", "dataset": "someone/model", "subset": "zh-en"}
SHARDS = [f"zh-en/train-0000{number}-of-00003.parquet" for number in range(3)]
SPEC = {"direction": "en-zh", "seed": 1, "source": SOURCE, "train": 40, "dev": 5}
READ = {"own": [], "dataset": []}
HOW = {"folder": None, "rows": None, "commits": None, "confirm": False}


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
def hub(reach, monkeypatch):
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    monkeypatch.setattr("entropy_valley.hub.BLOCK", 2_000)
    with serve({OLD: {"README.md": b""}, NEW: {"README.md": b"", **RELEASED, **OTHERS}}) as server:
        reach(server.url)
        yield server


@pytest.fixture
def local(tmp_path):
    for name, content in (RELEASED | OTHERS).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return {**SOURCE, "folder": str(tmp_path)}


def pairs(**change):
    return list(sources.make(SOURCE | change).pairs("en-zh", "train", 1))


def test_lost_connections_change_nothing_of_what_is_read(hub):
    assert pairs(rows=2100) == EXPECTED
    undisturbed = dict(hub.served)
    hub.served.clear()
    reading = sources.make(SOURCE).pairs("en-zh", "train", 1)
    begun = [next(reading) for _ in range(10)]  # of the first file
    hub.lost.update({name: 3 for name in SHARDS[1:]})
    assert [*begun, *reading] == EXPECTED
    assert not hub.lost.total() and hub.served[SHARDS[0]] == undisturbed[SHARDS[0]]
    assert all(hub.served[name] < undisturbed[name] + 3 * len(RELEASED[name]) / 2 for name in SHARDS[1:])


def test_a_connection_that_stays_lost_says_which_files_to_put_where(hub):
    hub.lost[SHARDS[1]] = 1000
    with pytest.raises(InputError, match=r"cannot be read: .*--include 'zh-en/train-\*' --local-dir DIR.*folder: DIR"):
        pairs()


def test_the_record_names_the_commit_and_every_file(hub, tmp_path):
    out = {"train": tmp_path / "train.jsonl", "dev": tmp_path / "dev.jsonl", "report": tmp_path / "corpus.json"}
    run_here("corpus", SPEC, READ, out, HOW | {"rows": 2100, "both_ways": False})
    origin = provenance.record_of(tmp_path / "train.jsonl").facts["origin"]
    digests = {file["rfilename"]: file["lfs"]["sha256"] for file in hub.listing(NEW)["siblings"] if "lfs" in file}
    assert origin == {"dataset": "someone/model", "revision": NEW, "files": {name: digests[name] for name in SHARDS}}
    test = {"direction": "zh-en", "seed": 1, "source": {**SOURCE, "split": "validation"}, "limit": None}
    run_here("testset", test, READ, tmp_path / "test.jsonl", HOW | {"rows": 15})
    assert len(files.read_jsonl(tmp_path / "test.jsonl")) == 15
    assert list(provenance.record_of(tmp_path / "test.jsonl").facts["origin"]["files"]) == [next(iter(OTHERS))]


def test_what_is_published_meanwhile_is_not_read(hub, tmp_path):
    """The first job keeps the newest commit; a later one reads the same, unless the config names another."""
    asked = {"direction": "zh-en", "seed": 1, "source": {**SOURCE, "split": "validation"}, "limit": None}

    def origin(spec):
        run_here("testset", spec, READ, tmp_path / "test.jsonl", HOW | {"commits": tmp_path / "datasets"})
        return provenance.record_of(tmp_path / "test.jsonl").facts["origin"]["revision"]

    assert origin(asked) == NEW
    hub.commits["c" * 40] = hub.commits[NEW]
    assert origin(asked) == NEW
    assert origin({**asked, "source": {**asked["source"], "revision": "c" * 40}}) == "c" * 40


def test_a_large_stream_needs_the_configs_agreement(hub, monkeypatch):
    monkeypatch.setattr("entropy_valley.hub.SMALL", 1000)
    with dataset.reading(None, agreed=False), pytest.raises(InputError, match=r"would download 0.0 MB.*confirm=yes"):
        pairs()
    with dataset.reading(None, agreed=True):
        assert pairs() == EXPECTED


def test_a_local_copy_gives_the_same_pairs_and_digests_of_its_files(hub, local):
    from_hub, from_folder = (build.corpus(SPEC | {"source": source}, rows=2100) for source in (SOURCE, local))
    assert from_folder[:2] == from_hub[:2]
    names = [name.split("/")[1] for name in SHARDS]
    assert from_folder[3]["origin"] == {
        "files": {name: files.bytes_digest(RELEASED[f"zh-en/{name}"]) for name in names}
    }


def test_another_number_of_rows_is_refused_and_no_part_of_the_params(local):
    with pytest.raises(InputError, match=r"2100 rows instead of 2099.*`rows`"):
        build.corpus(SPEC | {"source": local}, rows=2099)
    with pytest.raises(InputError, match="15 rows instead of 1512"):
        test = {"direction": "zh-en", "seed": 1, "source": {**local, "split": "validation"}, "limit": 3}
        build.testset({**test, "subset": "first"}, rows=1512)
    made = sources.make({**local, "rows": 7})
    assert made.total == 7 and "rows" not in made.settings("en-zh", "train")


def test_what_the_hub_has_not(hub):
    with pytest.raises(InputError, match=rf"no zh-en/test-\*.parquet .* at {NEW}.*refs/convert/parquet"):
        pairs(split="test")
    hub.gated = True
    with pytest.raises(InputError, match=r"cannot be read: 403"):
        pairs()


def test_the_hubs_own_conversion_is_read(hub):
    hub.commits[NEW] = {"zh-en/train/0000.parquet": RELEASED[SHARDS[0]]}
    assert pairs(revision=NEW) == EXPECTED[:700]


def test_a_damaged_file_is_no_data_set(local, tmp_path):
    (tmp_path / SHARDS[1]).write_bytes(RELEASED[SHARDS[1]][:-50])
    with pytest.raises(InputError, match=r"data set someone/model \(zh-en, train\): cannot be read: Parquet"):
        pairs(folder=str(tmp_path))


def test_without_a_network_the_files_to_fetch_are_named(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"cannot be downloaded .*hf download .*'zh-en/train-\*'.*folder: DIR"):
        pairs()


def test_either_direction_is_read_and_a_column_that_is_not_there_is_named(local):
    swapped = [pair[::-1] for pair in EXPECTED]
    assert list(sources.make(local).pairs("zh-en", "train", 1)) == swapped
    with pytest.raises(InputError, match=r"no column translation.fr"):
        next(sources.make(local).pairs("zh-fr", "train", 1))


def test_a_local_copy_without_the_split_says_what_to_fetch(local):
    with pytest.raises(InputError, match=r"no test-\*.parquet.*hf download.*someone/model.*'zh-en/test-\*'"):
        list(sources.make({**local, "split": "test"}).pairs("zh-en", "test", 1))


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
