"""All results of a small run, each by its own job, and one inference job for all of them."""

from __future__ import annotations

import json

from bench import SCRIPTS, run

from entropy_valley import files
from entropy_valley.provenance import ENDING

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
    ("ratio", "sig_first", {}, 4),
    ("ev", "reverse_sig", {"sig": "stepwise_kl", "backward": True}, 4),
    ("daedal", "daedal", {"eos_window": 1, "cap": 24}, 4),
    ("ratio", "rho_eos", {"cap": 24}, 4),
]
SIGS = {"sig": "distractor", "measure": "gini"}
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
            yield {"rule": "sig_concentration", "spec": SPEC | SIGS, "testset": testset}

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


def lines(store):
    return [json.loads(line)["key"] for shard in store.glob("*.jsonl") for line in shard.read_text().splitlines()]
