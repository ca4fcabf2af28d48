"""Tiny runs of every stage, and what of their files is compared with ``golden.json``: see test_golden.py."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import fake_ratings
import fake_results
from bench import SCRIPTS, Bench, run
from tiny_checkpoints import SOURCES
from tiny_training import ROWS, spec

from entropy_valley import files, provenance
from entropy_valley.decoding.orders import ORDERS
from entropy_valley.demo import toy_comet
from entropy_valley.demo.settings import Estimator

# What depends on the machine, the installed packages or the last bit of a weight.
MACHINES = ("digest", "digests", "versions", "signature", "signatures", "backbone_digest", "data", "path")


def read(path: Path) -> Any:
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
        return [walk(one) for one in value] if isinstance(value, list) else value

    return walk(value), numbers


def summary(value: Any) -> dict[str, Any]:
    """What golden.json has of a stage's results."""
    words, numbers = parts(value)
    return {"words": files.digest(words), "numbers": [float(f"{one:.6g}") for one in numbers]}


def same(known: dict[str, Any], found: dict[str, Any]) -> bool:
    """Words, tokens and counts agree exactly, numbers up to what another CPU's rounding can do."""
    pairs = zip(known["numbers"], found["numbers"], strict=False)
    close = all(math.isclose(one, other, rel_tol=2e-3, abs_tol=2e-4) for one, other in pairs)
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

    def corpus(self, run_script: Any) -> Any:
        paths = [self.root / "corpus" / name for name in ("train.jsonl", "dev.jsonl", "corpus.json", "test.jsonl")]
        drawn = {"direction": "en-de", "revision": 1, "seed": 1, "source": {"name": "embedded"}}
        sizes = {"train": 20, "dev": 5, "filters": {"en": {"words": [3, 12]}, "de": {"words": [3, 12]}}}
        run_script("corpus", drawn | sizes, "--train", paths[0], "--dev", paths[1], "--report", paths[2])
        run_script("testset", drawn | {"limit": 6}, "--out", paths[3])
        return [read(path) for path in paths]

    def overlap(self, run_script: Any) -> Any:
        out = self.root / "overlap.json"
        run_script("overlap", {"revision": 1}, "--testset", self.testset, "--train", self.train, "--out", out)
        return read(out)

    def tokens(self, run_script: Any) -> Any:
        backbone, out = self.checkpoints / "llada", self.root / "tokens.jsonl"
        job = {"backbone": "llada", "family": "llada", "revision": 1}
        run_script("tokens", job, "--testset", self.testset, "--backbone", backbone, "--out", out)
        return read(out)

    def length_ratios(self, run_script: Any) -> Any:
        backbone, out = self.checkpoints / "llada", self.root / "length_ratios.json"
        job = {"tokenizers": {"tiny": "llada"}, "revision": 1}
        run_script("length_ratios", job, "--pairs", self.train, "--backbone", f"tiny={backbone}", "--out", out)
        return read(out)

    def pretraining(self, run_script: Any) -> Any:
        shape = {"vocabulary": 300, "width": 16, "layers": 1, "heads": 2, "kv_heads": 1, "ffn": 24, "context": 96}
        rates = {"learning_rate": 0.01, "warmup": 0.05, "weight_decay": 0.01, "all_mask_share": 0.3}
        job = {"family": "dream", "seed": 1, "bos": False, "prompts": {"en-zh": "Say: {src}\n"}}
        job["pretraining"] = {"steps": 4, "batch": 8, **rates, **shape}
        corpus, out = f"en-zh={self.train}", self.root / "pretraining/out"
        folders = ["--out", out, "--work", self.root / "work", "--logs", self.root / "logs"]
        run_script("pretrain", job, "--corpus", corpus, "--dev", corpus, *folders, "--checkpoint-every", 9)
        return [read(out / name) for name in ("checkpoint.json", "config.json", "tokenizer.json")]

    def training(self, run_script: Any) -> Any:
        out, backbone = self.root / "training/adapter", self.checkpoints / "llada"
        folders = ["--out", out, "--work", self.root / "work2", "--logs", self.root / "logs"]
        job = spec(max_steps=3, dropout=0.1)
        run_script("train", job, "--corpus", self.train, "--backbone", backbone, *folders, "--checkpoint-every", 9)
        return [read(out / name) for name in ("adapter.json", "adapter_config.json", "losses.csv")]

    def adoption(self, run_script: Any) -> Any:
        """Of the adapter that the stage before trained."""
        given, out = self.root / "training/adapter", self.root / "adoption/adapter"
        source = {"repository": None, "revision": None, "subfolder": None}
        job = {"backbone": "tiny", "family": "llada", "direction": "en-zh", "seed": 1, "revision": 1, "source": source}
        folders = ["--backbone", self.checkpoints / "llada", "--folder", given, "--work", self.root / "work3"]
        run_script("adopt_adapter", job, *folders, "--out", out)
        return [read(out / name) for name in ("adapter.json", "adapter_config.json")]

    def decoding(self, run_script: Any) -> Any:
        """Canvases of the paper's methods; orders that read no file of their own, and variable-length decoders."""
        canvases = [self.bench.canvas(method) for method in ("oracle", "ratio", "ev")]
        more = {"hybrid": {"p": 0.5}, "daedal": {"eos_window": 1, "cap": 24}, "rho_eos": {"cap": 24}}
        found = []
        needs_no_alignment = [name for name in ORDERS if name != "oracle_anchor"]  # tests/engine/test_authors_orders.py
        for order in [*needs_no_alignment, "daedal", "rho_eos"]:
            self.bench.decode("ratio", order=order, out=order, **more.get(order, {}))
            found.append([read(self.bench.out), read(self.bench.info)])
        return [canvases, found]

    def _measured(self, script: str, settings: dict[str, Any], *outputs: Any) -> None:
        run([SCRIPTS / f"{script}.py", json.dumps(self.bench.spec | settings), *self.bench.common, *outputs])

    def length_statistics(self, run_script: Any) -> Any:
        out = self.root / "length_statistics.json"
        self._measured("length_statistics", {"pairs": 4, "bias_pairs": 2}, "--out", out)
        return read(out)

    def sig_concentration(self, run_script: Any) -> Any:
        self._measured(
            "sig_concentration", {"sig": "distractor", "measure": "gini"}, "--out", out := self.root / "sig.jsonl"
        )
        return read(out)

    def valley(self, run_script: Any) -> Any:
        settings = {"offset": 2, "ratios": [0.6, 1.0], "sentences": 3, "seed": 1}
        self._measured("valley", settings, "--out", out := self.root / "valley.json")
        return read(out)

    def length_head(self, run_script: Any) -> Any:
        training = {"pairs": 4, "epochs": 2, "learning_rate": 0.1, "batch": 2, "longest": 12}
        out, info = self.root / "head/head.safetensors", self.root / "head/head.json"
        settings = {"seed": 1, "training": training}
        self._measured("length_head", settings, "--dev", self.testset, "--out", out, "--info", info)
        return read(info)

    def generation(self, run_script: Any) -> Any:
        bench = Bench(self.root / "llama3", self.checkpoints, self.testset, "llama3")
        bench.generate(beams=3, max_new_tokens=6)
        return [read(bench.out), read(bench.info)]

    def scoring(self, run_script: Any) -> Any:
        folder, config = self.root / "comet", Estimator(seed=1, steps=1, width=16, heads=2, vocabulary=300)
        tokenizer = toy_comet.train_tokenizer(SOURCES, config)
        toy_comet.write_checkpoint(toy_comet.new_model(folder, tokenizer, config), folder)
        hypotheses, out = self.root / "hypotheses.jsonl", self.root / "scores"
        files.write_jsonl(hypotheses, [{"id": f"s{n}", "hypothesis": text} for n, text in enumerate(SOURCES[1::7])])
        job = {"direction": "en-zh", "revision": 1, "target_language": "zh"}
        job["comet"] = {"checkpoint": None, "batch_size": 1}
        inputs = ["--testset", self.testset, "--hypotheses", hypotheses, "--comet", folder]
        outputs = ["--segments", out / "scores.jsonl", "--system", out / "scores.json", "--store", self.root / "store"]
        run_script("score", job, *inputs, *outputs)
        return [read(out / name) for name in ("scores.jsonl", "scores.json")]

    def human_evaluation(self, run_script: Any) -> Any:
        """A pack of made-up sentences, a form that a simulated annotator filled in, and its ratings."""
        folder = self.root / "human_evaluation"
        pack, mapping, form, out = (folder / name for name in ("pack.json", "mapping.json", "en-zh.A.csv", "out.jsonl"))
        fake_ratings.write_pack(pack, mapping)
        run_script("human_simulated", {"seed": 1}, pack, "--annotator", "A", "--out", form)
        job = ("--pack", pack, "--mapping", mapping, "--forms", form, "--folder", folder, "--out", out)
        run_script("human_ratings", {"annotators": ["A"]}, *job)
        return [read(path) for path in (pack, mapping, form, out)]

    def reporting(self, run_script: Any) -> Any:
        """Two tables, and the numbers of a figure, of made-up results."""
        found = []
        endings = "tex float.tex md html csv"
        reports = {"tables/main": endings, "tables/full_significance": endings, "figures/hero": "pdf png csv"}
        for key, written in reports.items():
            folder = self.root / key
            params = fake_results.write(folder, sentences=20)
            for cell in params["cells"]:
                translations = Path(cell["path"]).with_name("hypotheses.jsonl")
                with provenance.made("decode", {}, [], [translations]):
                    files.write_jsonl(translations, [])
            outputs = {ending: folder / f"out.{ending}" for ending in written.split()}
            options = [part for ending, path in outputs.items() for part in (f"--{ending}", path)]
            run_script("report", key, params, *options)
            found += [read(path) for ending, path in outputs.items() if ending not in ("pdf", "png", "html")]
        return found
