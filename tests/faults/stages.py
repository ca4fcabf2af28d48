"""The stages of a tiny chain of jobs, from a corpus to a table, and the files that it starts from."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import finished

from entropy_valley import files

TRAIN, TEST, BACKBONE, ADAPTER = "given/train.jsonl", "given/test.jsonl", "given/llada", "train/adapter"
Paths = str | list[str] | dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """A job as its rule runs it; ``other`` are params by which an older version of its results was made."""

    script: str
    spec: dict[str, Any]
    output: Paths
    input: Paths = ()
    execution: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    other: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)

    def job(self, old: bool = False) -> dict[str, Any]:
        """What :func:`run_rule.snakemake_object` takes."""
        spec = self.spec | self.other if old else self.spec
        places = {"input": self.input, "output": self.output, "execution": self.execution}
        return {"rule": self.script, "spec": spec, **places, "config": self.config}


GRAMMAR = {"revision": 1, "direction": "en-de", "seed": 1, "source": {"name": "embedded"}, "train": 20, "dev": 5}
SHAPE = {"vocabulary": 300, "width": 16, "layers": 1, "heads": 2, "kv_heads": 1, "ffn": 24, "context": 96}
RATES = {"learning_rate": 0.01, "warmup": 0.05, "weight_decay": 0.01, "all_mask_share": 0.3}
PRETRAINED = {"family": "dream", "seed": 1, "bos": False, "prompts": {"en-zh": "Say: {src}\n"}}
RUN = {"revision": 1, "family": "llada", "prompt": "Say: {src}\n", "bos": False, "shifted": False}
RUN |= {"precision": "float32", "direction": "en-de"}
SET = {"cells": [["test", "ev", "med", 4], ["test", "neighbours", "med", 4]], "schedule": "llada"}
SET["methods"] = {"ev": {"ratios": [0.6, 0.8, 1.0]}, "neighbours": {"ratios": [0.6, 0.8, 1.0], "radius": 1}}
SET["orders"] = {"med": {"order": "med", "order_settings": {}}}
SET["fits"] = {"length_statistics": RUN | {"parts": ["confidence_bias"], "bias_pairs": 2}}
SCORE = {"direction": "en-de", "revision": 1, "target_language": "de", "comet": {"checkpoint": None, "batch_size": 1}}
COMET = {"seed": 1, "steps": 1, "width": 16, "heads": 2, "vocabulary": 300, "pairs": 4, "minimum_spearman": -1.0}


def stages() -> dict[str, Stage]:
    """All stages, in the order of the chain."""
    written = {"train": "en-de/train.jsonl", "dev": "en-de/dev.jsonl", "report": "en-de/corpus.json"}
    read, execution = {"own": [], "dataset": []}, {"folder": None, "rows": None}
    corpus = Stage("corpus", GRAMMAR, written, read, execution, other={"seed": 2})
    return {"corpus": corpus} | _models() | _results()


def _models() -> dict[str, Stage]:
    from tiny_training import RUN as PROCESS
    from tiny_training import spec

    source = {"repository": None, "revision": None, "subfolder": None}
    adopted = {"backbone": "tiny", "family": "llada", "direction": "en-de", "seed": 1, "revision": 1, "source": source}
    training = {"work": "work/train", "logs": "logs/train", "checkpoint_every": 1}
    return {
        "pretrain": Stage(
            "pretrain",
            PRETRAINED | {"pretraining": {"steps": 4, "batch": 8, **RATES, **SHAPE}},
            "backbones/tiny/checkpoint.json",
            {"train": [TRAIN], "dev": [TRAIN]},
            {"directions": ["en-zh"], "work": "work/tiny", "logs": "logs/tiny", "checkpoint_every": 1},
            other={"seed": 2},
        ),
        "train_comet": Stage(
            "train_comet",
            {"revision": 1, **COMET},
            "comet/comet.json",
            {"train": ["en-de/train.jsonl"], "dev": ["en-de/dev.jsonl"]},
            needs=("corpus",),
            other={"seed": 2},
        ),
        "train": Stage(
            "train",
            spec(max_steps=4, dropout=0.1),
            f"{ADAPTER}/adapter.json",
            {"corpus": TRAIN},
            {"backbone": BACKBONE, **training, **PROCESS},
            other={"seed": 2},
        ),
        "adopt": Stage(
            "adopt_adapter",
            adopted,
            "adopted/adapter/adapter.json",
            execution={"backbone": BACKBONE, "folder": ADAPTER, "work": "work/adopt", "confirm": False},
            needs=("train",),
            other={"seed": 2},
        ),
    }


def _results() -> dict[str, Stage]:
    rows = {name: {"rows": f"set/{name}.jsonl", "header": f"set/{name}.json"} for name in ("translations", "scores")}
    model = {"backbone": BACKBONE, "adapter": ADAPTER, "corpus": "given", "store": "store/run", "device": "cpu"}
    scored = {"checkpoints": {"comet": "given/comet"}, "device": "cpu", "store": "store/scores"}
    return {
        "translate": Stage(
            "translate",
            RUN | SET,
            rows["translations"],
            {"testsets": [TEST], "shards": []},
            model,
            ("train",),
            {"cells": [["test", "ev", "med", 3]]},
        ),
        "score": Stage(
            "score",
            SCORE,
            rows["scores"],
            {"testsets": [TEST], "translations": rows["translations"]["rows"], "comet": []},
            scored,
            ("train", "translate"),
            {"revision": 2},
        ),
        "table": _report("tables/main"),
    }


def _report(name: str) -> Stage:
    """A table or figure of a finished run, whose results are there."""
    from entropy_valley.experiment import tables
    from entropy_valley.experiment.config import load_merged

    config = finished.config() | {"results": "results"}
    experiment = load_merged(config, further=tables.problems)
    report = tables.configured(experiment)[name]
    outputs = [f"results/{name}.{ending}" for ending in report.endings]
    return Stage(report.rule, json.loads(tables.spec(experiment)), outputs, report.inputs(), config=config)


def given() -> None:
    """Write what the chain starts from, into the working folder."""
    from tiny_checkpoints import SOURCES, write
    from tiny_training import ROWS

    from entropy_valley.experiment.demo import toy_comet
    from entropy_valley.experiment.demo.settings import Estimator

    texts = zip(SOURCES[::7], SOURCES[::-7], strict=False)
    rows = [{"id": f"s{n}", "source": source, "target": target} for n, (source, target) in enumerate(texts)]
    files.write_jsonl(TEST, rows)
    for path in (TRAIN, "given/dev.jsonl"):
        files.write_jsonl(path, ROWS)
    write(Path(BACKBONE), "llada", eos=4)
    config = Estimator(seed=1, steps=1, width=16, heads=2, vocabulary=300)
    comet = Path("given/comet")
    toy_comet.write_checkpoint(toy_comet.new_model(comet, toy_comet.train_tokenizer(SOURCES, config), config), comet)
    shutil.copytree(finished.RESULTS, "results")
