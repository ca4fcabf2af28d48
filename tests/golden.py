"""Tiny runs of every stage, and what of their files is compared with ``golden.json``: see test_golden.py."""

import csv
import dataclasses
import math
from pathlib import Path
from typing import Any

import fake_ratings
import finished
from bench import Bench
from run_rule import run_here
from tiny_checkpoints import SOURCES
from tiny_training import ROWS, RUN, spec

from entropy_valley import files, results
from entropy_valley.decoding.orders import ORDERS
from entropy_valley.experiment.demo import toy_comet
from entropy_valley.experiment.demo.settings import Estimator
from entropy_valley.lengths import make_method
from entropy_valley.lengths.statistics import LengthStatistics, confidence_curve
from entropy_valley.results import System
from entropy_valley.translation.fits import Fits, Pairs
from entropy_valley.translation.job import RunModel

# What depends on the machine, the installed packages or the last bit of a weight.
MACHINES = ("digest", "digests", "versions", "signature", "signatures", "backbone_digest", "data", "path")


def read_file(path: Path) -> Any:
    """What a stage wrote: values of JSON, JSON Lines and CSV, else text."""
    if path.suffix == ".json":
        return files.read_json(path)
    if path.suffix == ".jsonl":
        return files.read_jsonl(path)
    if path.suffix == ".csv":
        with open(path, newline="") as file:
            return [[number(field) for field in row] for row in csv.reader(file)]
    return path.read_text(encoding="utf-8")


def number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def parts(value: Any) -> tuple[Any, list[float]]:
    """A value without its floating-point numbers and what depends on the machine; the numbers, in order."""
    numbers: list[float] = []

    def walk(value: Any) -> Any:
        if isinstance(value, float):
            numbers.append(value)
            return None
        if isinstance(value, dict):
            return {key: walk(value[key]) for key in sorted(value) if not key.endswith(MACHINES)}
        return [walk(one) for one in value] if isinstance(value, list | tuple) else value

    return walk(value), numbers


def summary(value: Any) -> dict[str, Any]:
    """What golden.json has of a stage's results."""
    words, numbers = parts(value)
    return {"words": files.digest(words), "numbers": [float(f"{one:.6g}") for one in numbers]}


def same(known: dict[str, Any], found: dict[str, Any]) -> bool:
    """Words, tokens and counts agree exactly, numbers up to what another CPU's rounding can do.

    Under three instruction sets of one CPU they are at most 4e-5 of themselves apart; ten times that is allowed. Where
    a file has four decimals, a number that is rounded to the other side is 1e-4 apart; twice that is allowed. Products
    with bfloat16 factors, which are 2e-3 off, are not taken for float32 ones.
    """
    pairs = zip(known["numbers"], found["numbers"], strict=False)
    close = all(math.isclose(one, other, rel_tol=4e-4, abs_tol=2e-4) for one, other in pairs)
    return known["words"] == found["words"] and len(known["numbers"]) == len(found["numbers"]) and close


class Stages:
    """Each method runs a stage in a folder of its own and returns what it wrote."""

    def __init__(self, root: Path, checkpoints: Path) -> None:
        self.root, self.checkpoints = root, checkpoints
        self.testset, self.train = root / "en-zh/dev.jsonl", root / "en-zh/train.jsonl"
        texts = zip(SOURCES[::7], SOURCES[::-7], strict=False)
        pairs = [{"id": f"s{n}", "source": source, "target": target} for n, (source, target) in enumerate(texts)]
        files.write_jsonl(self.testset, pairs)
        files.write_jsonl(self.train, ROWS)
        self.bench = Bench(root / "llada", checkpoints, self.testset)

    def corpus(self) -> Any:
        names = {"train": "train.jsonl", "dev": "dev.jsonl", "report": "corpus.json"}
        paths, test = {key: self.root / "corpus" / name for key, name in names.items()}, self.root / "corpus/test.jsonl"
        drawn = {"direction": "en-de", "revision": 1, "seed": 1, "source": {"name": "embedded"}}
        sizes = {"train": 20, "dev": 5, "filters": {"en": {"words": [3, 12]}, "de": {"words": [3, 12]}}}
        execution = {"folder": None, "rows": None}
        read = {"own": [], "dataset": []}
        run_here("corpus", drawn | sizes, read, paths, execution)
        run_here("testset", drawn | {"limit": 6}, read, test, execution)
        return [read_file(path) for path in (*paths.values(), test)]

    def overlap(self) -> Any:
        read, out = {"testset": self.testset, "train": self.train}, self.root / "overlap.json"
        run_here("overlap", {"revision": 1}, read, out)
        return read_file(out)

    def tokens(self) -> Any:
        job, out = {"backbone": "llada", "family": "llada", "revision": 1}, self.root / "tokens.jsonl"
        run_here("tokens", job, {"testset": self.testset}, out, {"backbone": self.checkpoints / "llada"})
        return read_file(out)

    def length_ratios(self) -> Any:
        job, out = {"tokenizers": {"tiny": "llada"}, "revision": 1}, self.root / "length_ratios.json"
        run_here("length_ratios", job, {"pairs": self.train}, out, {"tiny": self.checkpoints / "llada"})
        return read_file(out)

    def pretraining(self) -> Any:
        shape = {"vocabulary": 300, "width": 16, "layers": 1, "heads": 2, "kv_heads": 1, "ffn": 24, "context": 96}
        rates = {"learning_rate": 0.01, "warmup": 0.05, "weight_decay": 0.01, "all_mask_share": 0.3}
        job = {"family": "dream", "seed": 1, "bos": False, "prompts": {"en-zh": "Say: {src}\n"}}
        job["pretraining"] = {"steps": 4, "batch": 8, **rates, **shape}
        read, out = {"train": [self.train], "dev": [self.train]}, self.root / "pretraining/out"
        execution = {
            "directions": ["en-zh"],
            "work": self.root / "work",
            "logs": self.root / "logs",
            "checkpoint_every": 9,
        }
        run_here("pretrain", job, read, out / "checkpoint.json", execution)
        return [read_file(out / name) for name in ("checkpoint.json", "config.json", "tokenizer.json")]

    def training(self) -> Any:
        out = self.root / "training/adapter"
        execution = {"backbone": self.checkpoints / "llada", "work": self.root / "work2", "logs": self.root / "logs"}
        execution |= {"checkpoint_every": 9, **RUN}
        run_here("train", spec(max_steps=3, dropout=0.1), {"corpus": self.train}, out / "adapter.json", execution)
        return [read_file(out / name) for name in ("adapter.json", "adapter_config.json", "losses.csv")]

    def adoption(self) -> Any:
        """Of the adapter that the stage before trained."""
        given, out = self.root / "training/adapter", self.root / "adoption/adapter"
        source = {"repository": None, "revision": None, "subfolder": None}
        job = {"backbone": "tiny", "family": "llada", "direction": "en-zh", "seed": 1, "revision": 1, "source": source}
        execution = {
            "backbone": self.checkpoints / "llada",
            "folder": given,
            "work": self.root / "work3",
            "confirm": False,
        }
        run_here("adopt_adapter", job, (), out / "adapter.json", execution)
        return [read_file(out / name) for name in ("adapter.json", "adapter_config.json")]

    def decoding(self) -> Any:
        """Canvases of the paper's methods; orders that read no file of their own, and variable-length decoders."""
        names = [row["id"] for row in files.read_jsonl(self.testset)]
        canvases = [
            [{"id": name, **row} for name, row in zip(names, self.bench.canvas(method), strict=True)]
            for method in ("oracle", "ratio", "ev")
        ]
        more = {"hybrid": {"p": 0.5}, "daedal": {"eos_window": 1, "cap": 24}, "rho_eos": {"cap": 24}}
        found = []
        needs_no_alignment = [name for name in ORDERS if name not in ("oracle_anchor", "blocks")]
        for order in [*needs_no_alignment, "daedal", "rho_eos"]:
            rows, entry = self.bench.decode("ratio", order=order, out=order, **more.get(order, {}))
            assert [row["canvas"] for row in rows] == self.bench.canvas("ratio")
            found.append([[without(row, "canvas") for row in rows], entry])
        return [canvases, found]

    def length_statistics(self) -> Any:
        """Of the fitted bias its values: other parameters of the same curve are one rounding away."""
        model = RunModel(self.bench.spec, self.bench.execution)
        with model.store:
            found = Pairs(model.sentences(self.testset), model.runner("probe")).statistics(
                ["confidence_bias", "line"], 2
            )
        bias, statistics = found["confidence_bias"], LengthStatistics.of(found)
        values = [confidence_curve(point["length"], *statistics.bias) for point in bias["points"]]
        return {**found, "confidence_bias": {"values": values, "points": bias["points"]}}

    def learning(self) -> Any:
        """What ``ev_fit`` learns from, and how likely lengths then are."""
        model = RunModel(self.bench.spec, self.bench.execution)
        with model.store:
            pairs = Pairs(model.sentences(self.testset), model.runner("probe"))
            method = make_method("ev_fit", {"candidates": 7}, LengthStatistics.of(pairs.statistics(["line"])))
            found = pairs.examples(method)
        learned, facts = method.learn(found)
        chosen = [learned.choose(one.sentence, one.probes) for one in found]
        return [
            facts["pairs"],
            sorted(facts["weights"]),
            [[choice.length, *choice.scores.values()] for choice in chosen],
        ]

    def sig_concentration(self) -> Any:
        return self.bench.diagnose("sig", sig="distractor")

    def valley(self) -> Any:
        return self.bench.diagnose("valley", offset=2, ratios=[0.6, 1.0], sentences=3, seed=1)

    def length_head(self) -> Any:
        training = {"pairs": 4, "epochs": 2, "learning_rate": 0.1, "batch": 2, "longest": 12}
        bench = Bench(self.root / "length_head", self.checkpoints, self.testset)
        bench.root.mkdir()
        bench.fit(length_head={"seed": 1, "training": training})
        model = RunModel(bench.spec, dataclasses.replace(bench.execution, store=None))
        return Fits.of(model, bench.fits).facts["length_head"]

    def generation(self) -> Any:
        bench = Bench(self.root / "llama3", self.checkpoints, self.testset, "llama3")
        return list(bench.generate(beams=3, max_new_tokens=6))

    def scoring(self) -> Any:
        folder, config = self.root / "comet", Estimator(seed=1, steps=1, width=16, heads=2, vocabulary=300)
        tokenizer = toy_comet.train_tokenizer(SOURCES, config)
        toy_comet.write_checkpoint(toy_comet.new_model(folder, tokenizer, config), folder)
        cell, translations = System("dev", "ev", "med", 8), self.root / results.TRANSLATIONS
        out = self.root / results.SCORES
        rows = [{"id": f"s{n}", "hypothesis": text} for n, text in enumerate(SOURCES[1::7])]
        files.write_jsonl(translations, results.tidy({cell: rows}))
        job = {"direction": "en-zh", "revision": 1, "target_language": "zh"}
        job["comet"] = {"checkpoint": None, "batch_size": 1}
        execution = {"checkpoints": {"comet": folder}, "device": "cpu", "store": None}
        read = {"translations": translations, "testsets": [self.testset], "comet": []}
        run_here("score", job, read, {"rows": out, "header": out.with_suffix(".json")}, execution)
        return [
            results.systems(out)[cell],
            without(results.entries(results.record_path(out))[cell], *System._fields, "copies"),
        ]

    def human_evaluation(self) -> Any:
        """A pack of made-up sentences, a form that a simulated annotator filled in, and its ratings."""
        folder = self.root / "human_evaluation"
        pack, mapping, form, out = (folder / name for name in ("pack.json", "mapping.json", "en-zh.A.csv", "out.jsonl"))
        fake_ratings.write_pack(pack, mapping)
        run_here("human_forms", {"seed": 1}, pack, form, wildcards={"annotator": "A"}, rule="human_simulated")
        read = {"pack": pack, "mapping": mapping, "forms": [form]}
        run_here("human_ratings", {"annotators": ["A"]}, read, out, {"folder": folder})
        return [read_file(path) for path in (pack, mapping, form, out)]

    def reporting(self) -> Any:
        """Two tables, and the numbers of a figure, of a finished run."""
        run = finished.Run(self.root / "reporting")
        made = [run.make(name) for name in ("tables/main", "tables/full_significance", "figures/hero")]
        return [read_file(path) for of in made for ending, path in of.items() if ending not in ("pdf", "png", "html")]


def without(value: Any, *keys: str) -> Any:
    return {key: one for key, one in value.items() if key not in keys}
