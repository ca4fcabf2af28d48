import resource

import pytest

from entropy_valley.store import Store


def fill(folder, **values):
    with Store(folder) as store:
        for key, value in values.items():
            store.put(key, value)


VALUES = {"a": [1, 2.5, None], "b": {"text": "中\u2028文\x85"}, "d": [0.1 + 0.2, 1e-12 / 3, 5.9914645471079799]}


def test_values_survive_the_process_bit_for_bit(tmp_path):
    fill(tmp_path, **VALUES)
    store = Store(tmp_path)
    assert {key: store.get(key) for key in "abcd"} == VALUES | {"c": None}
    with pytest.raises(ValueError, match="not JSON compliant"):
        fill(tmp_path, c=float("nan"))
    assert Store(tmp_path).get("c") is None


def test_without_a_folder_and_where_only_read_nothing_is_written(tmp_path):
    with Store(None) as store:
        store.put("b", 2)
        assert store.get("b") is None
    assert len(Store(tmp_path / "new")) == 0
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("cut", [1, 5])
def test_a_torn_last_line_is_ignored_and_put_again(tmp_path, cut):
    fill(tmp_path, a=1, b=2)
    (shard,) = tmp_path.glob("*.jsonl")
    shard.write_bytes(shard.read_bytes()[:-cut])
    store = Store(tmp_path)
    assert store.get("a") == 1 and (store.get("b") is None or cut == 1)
    store.put("b", 2)
    assert Store(tmp_path).get("b") == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"value":0.7226', '"value":0.8226'),
        ('"value":0.7226', '"value":[0.7226'),
        ('{"key":"a"', '{"key":"c"'),
        ('"}\n', '","value":0.8226}\n'),
        ('{"key":"a"', '[]\n{"key":1}\n\nnull\n{"key":"中'),
    ],
    ids=["value", "not JSON", "key", "second value", "other lines"],
)
def test_an_edited_line_is_ignored_and_put_again(tmp_path, old, new):
    fill(tmp_path, a=0.7226)
    (shard,) = tmp_path.glob("*.jsonl")
    assert old in shard.read_text()
    shard.write_text(shard.read_text().replace(old, new))
    fill(tmp_path, b=3)
    store = Store(tmp_path)
    assert (store.get("a"), store.get("b"), store.get("c")) == (None, 3, None)
    store.put("a", 0.7226)
    assert store.get("a") == Store(tmp_path).get("a") == 0.7226


def test_each_writer_has_a_shard_of_its_own_and_reads_all(tmp_path):
    first, second = Store(tmp_path), Store(tmp_path)
    first.put("a", 1)
    second.put("b", 2)
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    assert len(Store(tmp_path)) == 2


def test_many_shards_are_read_without_opening_all_at_once(tmp_path):
    for place in range(70):
        fill(tmp_path, **{str(place): place})
    with Store(tmp_path) as store:
        assert [store.get(str(place)) for place in (*range(70), 3)] == [*range(70), 3]


def test_a_write_that_fails_names_the_shard_and_keeps_what_was_put(tmp_path):
    """A limit on the size of files stands for a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(OSError) as failed, Store(tmp_path) as store:
        store.put("first", 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
        try:
            store.put("second", "x" * 300)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (shard,) = tmp_path.glob("*.jsonl")
    assert failed.value.filename == str(shard)
    assert Store(tmp_path).get("first") == 1


def test_a_job_without_time_is_requeued_when_a_value_is_stored(tmp_path, slurm_job):
    """And only then; SLURM is asked once before, and once more when the time is over."""
    fill(tmp_path, a=1, b=2)
    assert slurm_job.calls() == ["show job 7"]
    slurm_job.ends_in(200)
    Store(tmp_path).get("a")
    fill(None, c=3)
    with pytest.raises(BaseException) as end:
        fill(tmp_path, c=3, d=4)
    assert end.typename == "Requeued" and slurm_job.calls() == ["show job 7", "show job 7", "requeue 7"]
    assert (Store(tmp_path).get("c"), Store(tmp_path).get("d")) == (3, None)


def test_a_job_that_slurm_does_not_requeue_goes_on(tmp_path, slurm_job, monkeypatch, capsys):
    slurm_job.ends_in(200, requeue="{ echo Access denied >&2; exit 1; }")
    fill(tmp_path, a=1, b=2)
    assert slurm_job.calls() == ["show job 7", "requeue 7"]
    assert "Access denied" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["SLURM_JOB_ID", "ENTROPY_VALLEY_REQUEUE"])
def test_other_processes_ask_slurm_nothing(tmp_path, slurm_job, monkeypatch, missing):
    slurm_job.ends_in(200)
    monkeypatch.delenv(missing)
    fill(tmp_path, a=1)
    assert slurm_job.calls() == []
