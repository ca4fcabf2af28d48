"""One job fills the store for all others of a run: they load no model and write what they write by themselves."""

from __future__ import annotations

import json
import shutil

import pytest
from bench import SCRIPTS, killed_at_the_sixth_result, run, run_without_torch
from cells import DECODES, METHODS, SPEC, Cells, lines, pairs
from entropy_valley.decoding.asked import Shard
from tiny_checkpoints import SOURCES

from entropy_valley import files, gpus
from entropy_valley.backbone import loading
from entropy_valley.engine import invariance
from entropy_valley.engine.engine import Engine
from entropy_valley.store import Store


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Training pairs, which are the dev pairs too, and two test sets that share sentences."""
    folder = tmp_path_factory.mktemp("data")
    return [
        pairs(folder / "corpus.jsonl", SOURCES[::3], SOURCES[::-2]),
        pairs(folder / "large.jsonl", SOURCES[::4], SOURCES[::-1]),
        pairs(folder / "small.jsonl", SOURCES[::8], SOURCES[2:]),
    ]


@pytest.fixture(scope="module")
def alone(tmp_path_factory, data, checkpoints):
    """Every result by a job that loads the model and knows of no other."""
    return Cells(tmp_path_factory.mktemp("alone"), data, checkpoints / "llada").make("--no-store")


@pytest.fixture
def cells(tmp_path, data, checkpoints):
    return Cells(tmp_path, data, checkpoints / "llada")


@pytest.fixture(scope="module")
def together(tmp_path_factory, data, checkpoints):
    """After one inference job: what it says, and its ledger."""
    cells = Cells(tmp_path_factory.mktemp("together"), data, checkpoints / "llada")
    stamp, (ledger,) = cells.infer()
    return cells, stamp, ledger


def test_one_load_fills_the_store_and_every_job_writes_its_bytes(together, alone, no_model):
    cells, stamp, ledger = together
    assert stamp == {"requests": len(list(cells.requests())), "failed": {}} and ledger["loads"] == 1
    no_model()
    assert cells.make("--from-store") == alone
    assert len(alone) == 3 + 2 * (len(METHODS) + 2 * len(DECODES) + 2)


def test_jobs_without_a_gpu_find_all_that_one_has_computed(cells, monkeypatch, no_model):
    """The GPU's model is in every key. Here the CPU stands for it, in padded passes, as on GPUs."""
    load, listed = loading.load_backbone, "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
    monkeypatch.setattr(loading, "load_backbone", lambda *given, device, **how: load(*given, device="cpu", **how))
    monkeypatch.setattr(gpus, "nvidia_smi", lambda: listed)
    monkeypatch.setitem(invariance.TOKENS, "cuda", 512)
    stamp, (ledger,) = cells.infer(None, "--device", "cuda")
    assert stamp["failed"] == {} and ledger["padded"]
    monkeypatch.setattr(gpus, "nvidia_smi", lambda: "")
    for folder in (cells.store, cells.statistics_store):  # another GPU has computed since, but something else
        with Store(folder, device="cuda NVIDIA A100-SXM4-80GB") as store:
            store.put("something else", 1)
    no_model()
    assert len(cells.make("--from-store", "--device", "cuda")) == 3 + 2 * (len(METHODS) + 2 * len(DECODES) + 2)


def test_nothing_is_computed_twice_and_again_no_model_is_loaded(together, no_model):
    cells, _, ledger = together
    stored = [lines(store) for store in (cells.store, cells.statistics_store)]
    assert sum(map(len, stored)) == sum(len(set(keys)) for keys in stored) == ledger["computed"]
    no_model()
    assert cells.infer()[1][-1]["computed"] == 0


def test_two_shards_and_the_files_of_the_run_answer_everything(cells, alone, together, no_model):
    results = together[0].folder / "results"
    fits = [request for request in cells.requests() if request["rule"].startswith("length_")]
    others = [request for request in cells.requests() if request not in fits]
    cells.infer(fits)
    given = ["--statistics", results / "length_statistics.json", "--length-head", results / "length_head"]
    for shard in ("0/2", "1/2"):
        _, ledgers = cells.infer(others, *given, "--shard", shard)
    assert [ledger["loads"] for ledger in ledgers] == [1, 1, 1]
    assert all(ledger["computed"] > len(lines(cells.store)) / 3 for ledger in ledgers[1:])
    no_model()
    assert cells.make("--from-store") == alone


def test_a_killed_job_goes_on_where_it_was(cells, together, monkeypatch):
    with killed_at_the_sixth_result(monkeypatch):
        cells.infer()
    assert cells.infer()[1][-1]["computed"] == together[2]["computed"] - 5


def test_a_job_with_all_in_the_store_imports_no_torch(together):
    cells, *_ = together
    for request in cells.requests():
        if request["rule"] in ("length_head", "sig_concentration") and "small" not in request["testset"].stem:
            run_without_torch([SCRIPTS / f"{request['rule']}.py", *cells.options(request), "--from-store"])
    asked = ["--requests", cells.folder / "requests.json", "--backbone", cells.checkpoint, "--out", cells.folder / "s"]
    stores = ["--store", cells.store, "--statistics-store", cells.statistics_store]
    run_without_torch([SCRIPTS / "inference.py", json.dumps(SPEC), *asked, *stores])


def test_a_failing_request_is_left_to_its_own_job_and_no_other_waits_for_it(cells, alone, tmp_path, capsys):
    long = shutil.copy(cells.data[2], tmp_path / "long.jsonl")
    rows = files.read_jsonl(long)
    files.write_jsonl(long, [*rows, {"id": "bad", "source": "the old red car " * 40, "target": "it"}])
    cells.data = [cells.data[0], cells.data[2], long]
    stamp, (ledger,) = cells.infer()
    bad = [label for label in stamp["failed"] if not label.endswith("long.jsonl")]
    assert stamp["failed"] and not bad and ledger["loads"] == 1
    assert "canvas ev" in "".join(stamp["failed"]) and "sentence 'bad'" in "".join(stamp["failed"].values())
    for command in cells.commands(["--from-store"]):
        out = command[command.index("--out") + 1]
        if "long" not in out.name:
            run(command)
            assert out.read_bytes() == alone[out.name]
    broken = next(command for command in cells.commands(["--from-store"]) if "ev long" in str(command))
    capsys.readouterr()
    with pytest.raises(SystemExit):
        run(broken)
    assert "long.jsonl: sentence 'bad': prompt" in capsys.readouterr().err


def test_an_error_in_a_users_method_or_order_is_its_requests_alone(cells, tmp_path, monkeypatch):
    """Not before they have seen a probe."""
    (tmp_path / "broken.py").write_text(
        "class Broken:\n    sees_reference = False\n    def propose(self, sentence, probes): return [3]\n"
        "    def choose(self, sentence, probes): return 1 / 0\n"
        "class Order:\n    def scores(self, slots): return slots.values.entropy / 0 * 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    ratio, testset = cells.canvas("ratio", cells.data[2]), cells.data[2]
    broken = {**ratio, "spec": SPEC | {"method": "broken", "selector": {"selector": "broken:Broken"}}}
    spec = SPEC | {"order": "med", "order_settings": {}, "steps": 4, "schedule": "llada"}
    asked = [(spec | {"order": "broken:Order"}, ratio), (spec, broken), (spec, ratio)]
    decodes = [{"rule": "decode", "spec": by, "testset": testset, "choose": one} for by, one in asked]
    stamp, (ledger,) = cells.infer([broken, ratio, *decodes])
    method, order = stamp["failed"].pop(f"canvas broken {testset}"), f"decode broken:Order-T4 (ratio) {testset}"
    assert "broken.py, Broken.choose: sentence 'small3': ZeroDivisionError: division by zero (broken.py, " in method
    assert stamp["failed"].keys() == {order} and "Order.scores: sentence 's" in stamp["failed"][order]
    assert ledger["computed"] == 12  # a probe, and a decode that is tried and one that is done, of each sentence


def test_each_order_has_one_stream_and_what_is_only_read_another(cells, monkeypatch):
    streams, stream = [], Engine.run

    def noted(engine, queue, order=None):
        streams.append(type(order).__name__)
        return stream(engine, queue, order)

    monkeypatch.setattr(Engine, "run", noted)
    fitted = ("ev_line", "length_head")
    asked = [one for one in cells.requests() if not one["rule"].startswith("length_")]
    cells.infer([one for one in asked if one.get("choose", one)["spec"].get("method") not in fitted])
    assert streams == ["NoneType", "MinimumEntropy", "Random", "SigFirst", "ReverseSig"]


def test_a_request_of_another_model_is_refused(cells, capsys):
    request = cells.canvas("ratio", cells.data[2])
    request["spec"] = request["spec"] | {"precision": "bfloat16"}
    with pytest.raises(SystemExit):
        cells.infer([request])
    assert "request: precision is 'bfloat16', but 'float32' in the job's own spec" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["2/2", "1", "-1/2", "a/b"])
def test_what_is_no_shard(text):
    with pytest.raises(ValueError):
        Shard.named(text)


def test_what_is_no_request_is_named(cells, capsys):
    for request in ({"rule": "canvas"}, {"rule": "train", "spec": SPEC, "testset": "x"}):
        with pytest.raises(SystemExit):
            cells.infer([request])
        assert "requests.json: request 0 is none" in capsys.readouterr().err
    assert len(Store(cells.store)) == 0
