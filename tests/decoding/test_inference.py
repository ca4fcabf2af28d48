"""One job fills the store for all others of a run: they load no model and write what they write by themselves."""

from __future__ import annotations

import json
import shutil

import pytest
from bench import SCRIPTS, killed_at_the_sixth_result, run, run_without_torch
from tiny_checkpoints import SOURCES

from entropy_valley import files
from entropy_valley.decoding.asked import Shard
from entropy_valley.provenance import ENDING
from entropy_valley.store import Store

SPEC = {
    **{"family": "llada", "prompt": "Say: {src}\nIn German: ", "bos": False, "shifted": False},
    **{"precision": "float32", "revision": 1, "direction": "en-de"},
}
GRID = {"ratios": [0.6, 0.8, 1.0]}
METHODS = {
    "oracle": {},
    "ratio": {"ratios": 1.2, "reserve_eos_slot": True},
    "ev": GRID,
    "adaptive_ev": GRID,
    "neighbours": GRID | {"radius": 1},
    "ev_line": {"candidates": 3},
    "length_head": {"beam": 2},
    "daedal": {"ratios": 1.2, "eos_window": 1, "cap": 24},
    "reassigned": {"of": "ev", "seed": 1, "within": "all"},
}
MED, RANDOM = ("med", {}), ("random", {"seed": 3})
DECODES = [
    *((method, *MED, 4) for method in METHODS),
    ("ev", *MED, 6),
    ("ev", *RANDOM, 4),
    ("reassigned", *RANDOM, 4),
    ("ratio", "sig_first", {"backward": True}, 4),
    ("daedal", "daedal", {"eos_window": 1, "cap": 24}, 4),
    ("ratio", "rho_eos", {"cap": 24}, 4),
]
HEAD = {"pairs": 9, "epochs": 2, "learning_rate": 0.1, "batch": 4, "longest": 12}


class Cells:
    """All results of a run with two test sets, each made by its own job in ``folder``."""

    def __init__(self, folder, data, checkpoint):
        self.folder, self.data, self.checkpoint = folder, data, checkpoint
        self.store, self.statistics_store = folder / "store", folder / "statistics"

    def make(self, *options, start=run):
        """The bytes of every result."""
        for command in self.commands(options):
            start(command)
        results = (path for path in (self.folder / "results").iterdir() if not path.name.endswith(ENDING))
        return {path.name: path.read_bytes() for path in results}

    def commands(self, options):
        for request in self.requests():
            yield [SCRIPTS / f"{request['rule']}.py", *self.options(request), *options]

    def options(self, request):
        """The command line of a result's own job."""
        rule, store = request["rule"], self.store
        inputs, out = [], self.out(request)
        if rule == "canvas":
            inputs = ["--statistics", self.folder / "results" / "length_statistics.json"]
            inputs += ["--length-head", self.folder / "results" / "length_head"]
        if rule == "reassigned_canvas":
            inputs = ["--of", self.out(request["of"])]
        if rule == "decode":
            inputs = ["--canvas", self.out(request["choose"]), "--info", out.with_suffix(".info")]
        if rule == "length_head":
            inputs = ["--dev", request["dev"], "--info", out.with_suffix(".info")]
        if rule == "length_statistics":
            store = self.statistics_store
        common = ["--testset", request["testset"], "--backbone", self.checkpoint, "--store", store, "--out", out]
        return [json.dumps(request["spec"]), *common, *inputs]

    def out(self, request):
        spec, name = request["spec"], request["rule"]
        if name in ("canvas", "reassigned_canvas"):
            name = f"canvas {spec['method']}"
        if name == "decode":
            name += f" {request['choose']['spec']['method']} {spec['order']} {spec['steps']}"
        if name == "length_statistics":
            return self.folder / "results" / f"{name}.json"
        return self.folder / "results" / (name if name == "length_head" else f"{name} {request['testset'].stem}")

    def requests(self):
        corpus, *testsets = self.data
        yield {"rule": "length_statistics", "spec": SPEC | {"pairs": 5, "bias_pairs": 2}, "testset": corpus}
        yield {"rule": "length_head", "spec": SPEC | {"seed": 1, "training": HEAD}, "testset": corpus, "dev": corpus}
        for testset in testsets:
            for method in METHODS:
                yield self.canvas(method, testset)
            for method, order, settings, steps in DECODES:
                spec = SPEC | {"order": order, "order_settings": settings, "steps": steps, "schedule": "llada"}
                yield {"rule": "decode", "spec": spec, "testset": testset, "choose": self.canvas(method, testset)}
            spec = SPEC | {"offset": 2, "ratios": [0.6, 1.1], "sentences": 3, "seed": 1}
            yield {"rule": "valley", "spec": spec, "testset": testset}
            yield {"rule": "sig_concentration", "spec": SPEC, "testset": testset}

    def canvas(self, method, testset):
        request = {"spec": SPEC | {"method": method, "selector": METHODS[method]}, "testset": testset}
        if method == "reassigned":
            return {"rule": "reassigned_canvas", **request, "of": self.canvas("ev", testset)}
        return {"rule": "canvas", **request}

    def infer(self, requests=None, *options):
        """Run the inference job; its stamp, and the ledgers of all such jobs."""
        asked, stamp = self.folder / "requests.json", self.folder / "stamp"
        asked.write_text(json.dumps(list(self.requests() if requests is None else requests), default=str))
        stores = ["--store", self.store, "--statistics-store", self.statistics_store]
        arguments = [json.dumps(SPEC), "--requests", asked, "--backbone", self.checkpoint, *stores, "--out", stamp]
        run([SCRIPTS / "inference.py", *arguments, *options])
        logs = sorted((self.store / "runs").glob("*.json"), key=lambda path: path.name.split("-")[-1])
        return files.read_json(stamp), [log for log in map(files.read_json, logs) if log["job"] == "inference"]


def pairs(path, sources, targets):
    rows = [
        {"id": f"{path.stem}{n}", "source": s, "target": t}
        for n, (s, t) in enumerate(zip(sources, targets, strict=False))
    ]
    files.write_jsonl(path, rows)
    return path


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


def test_nothing_is_computed_twice_and_again_no_model_is_loaded(together, no_model):
    cells, _, ledger = together
    stored = [lines(store) for store in (cells.store, cells.statistics_store)]
    assert sum(map(len, stored)) == sum(len(set(keys)) for keys in stored) == ledger["computed"]
    no_model()
    assert cells.infer()[1][-1]["computed"] == 0


def lines(store):
    return [json.loads(line)["key"] for shard in store.glob("*.jsonl") for line in shard.read_text().splitlines()]


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
