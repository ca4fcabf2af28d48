"""The stages of a tiny chain of jobs, from a corpus to a table, and the files that it starts from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fake_results

from entropy_valley import files

TRAIN, TEST, BACKBONE, ADAPTER = "given/train.jsonl", "given/test.jsonl", "given/llada", "train/adapter"


@dataclass(frozen=True)
class Stage:
    """A job as its rule runs it; ``other`` are params by which an older version of its results was made."""

    script: str
    spec: dict[str, Any]
    options: tuple[str, ...]
    needs: tuple[str, ...] = ()
    other: dict[str, Any] = field(default_factory=dict)

    def job(self, old: bool = False) -> list[str]:
        spec = self.spec | (self.other if old else {})
        return [self.script, *((json.dumps(spec),) if spec else ()), *self.options]


def options(**given: Any) -> tuple[str, ...]:
    """``out="x"`` is ``--out x``; True is a switch."""
    found = []
    for name, value in given.items():
        found += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return tuple(found)


def _corpus(name: str, *more: str) -> tuple[str, ...]:
    return options(train=f"{name}/train.jsonl", dev=f"{name}/dev.jsonl", report=f"{name}/corpus.json") + more


def _model(name: str, ending: str = "jsonl", **more: Any) -> tuple[str, ...]:
    return options(
        testset=TEST, backbone=BACKBONE, adapter=ADAPTER, store="store/run", out=f"{name}/{name}.{ending}", **more
    )


def _report(key: str) -> tuple[str, ...]:
    from entropy_valley.reporting import reports

    written = {ending: f"{key}.{ending}" for ending in reports.find(key).endings}
    return key, "given/table.json", *options(**written)


GRAMMAR = {"revision": 1, "direction": "en-de", "seed": 1, "source": {"name": "embedded"}}
FILES = {"revision": 1, "seed": 1, "train": 6, "dev": 2, "direction": "en-zh"}
FILES["source"] = {"name": "files", "source": "given/own.en", "target": "given/own.zh"}
SHAPE = {"vocabulary": 300, "width": 16, "layers": 1, "heads": 2, "kv_heads": 1, "ffn": 24, "context": 96}
RATES = {"learning_rate": 0.01, "warmup": 0.05, "weight_decay": 0.01, "all_mask_share": 0.3}
PRETRAINED = {"family": "dream", "seed": 1, "bos": False, "prompts": {"en-zh": "Say: {src}\n"}}
RUN = {"revision": 1, "family": "llada", "prompt": "Say: {src}\n", "bos": False, "shifted": False}
RUN |= {"precision": "float32", "direction": "en-de"}
EV = {"method": "ev", "selector": {"ratios": [0.6, 0.8, 1.0]}}
MED = {"order": "med", "order_settings": {}, "steps": 4, "schedule": "llada"}
SCORE = {"direction": "en-de", "revision": 1, "target_language": "de", "comet": {"checkpoint": None, "batch_size": 1}}
COMET = {"seed": 1, "steps": 1, "width": 16, "heads": 2, "vocabulary": 300, "pairs": 4, "minimum_spearman": -1.0}
ASKED = {"rule": "decode", "spec": RUN | MED, "testset": TEST, "choose": {"rule": "canvas", "spec": RUN | EV}}


def stages() -> dict[str, Stage]:
    """All stages, in the order of the chain."""
    return _corpora() | _models() | _translations() | _results()


def _corpora() -> dict[str, Stage]:
    return {
        "corpus": Stage("corpus", GRAMMAR | {"train": 20, "dev": 5}, _corpus("en-de"), other={"seed": 2}),
        "corpora": Stage("corpus", FILES, _corpus("own/en-zh", "--both-ways"), (), {"seed": 2}),
        "testset": Stage("testset", GRAMMAR | {"limit": 6}, options(out="en-de/test.jsonl"), other={"limit": 5}),
    }


def _models() -> dict[str, Stage]:
    from tiny_training import spec

    training = spec(max_steps=4, dropout=0.1)
    trained = options(corpus=TRAIN, backbone=BACKBONE, out=ADAPTER, work="work/train", logs="logs/train")
    pretrained = options(corpus=f"en-zh={TRAIN}", dev=f"en-zh={TRAIN}", out="backbones/tiny", work="work/tiny")
    source = {"repository": None, "revision": None, "subfolder": None}
    adopted = {"backbone": "tiny", "family": "llada", "direction": "en-de", "seed": 1, "revision": 1, "source": source}
    return {
        "pretrain": Stage(
            "pretrain",
            PRETRAINED | {"pretraining": {"steps": 4, "batch": 8, **RATES, **SHAPE}},
            pretrained + options(logs="logs/tiny", checkpoint_every=1),
            other={"seed": 2},
        ),
        "train_comet": Stage(
            "train_comet",
            {"revision": 1, **COMET},
            options(corpus="en-de/train.jsonl", dev="en-de/dev.jsonl", out="comet"),
            ("corpus",),
            {"seed": 2},
        ),
        "train": Stage("train", training, trained + options(checkpoint_every=1), other={"seed": 2}),
        "adopt": Stage(
            "adopt_adapter",
            adopted,
            options(backbone=BACKBONE, folder=ADAPTER, work="work/adopt", out="adopted/adapter"),
            ("train",),
            {"seed": 2},
        ),
    }


def _translations() -> dict[str, Stage]:
    run = options(backbone=BACKBONE, adapter=ADAPTER, store="store/run")
    return {
        "length_statistics": Stage(
            "length_statistics",
            RUN | {"pairs": 4, "bias_pairs": 2},
            options(testset=TRAIN) + run + options(out="statistics/length_statistics.json"),
            ("train",),
            {"pairs": 3},
        ),
        "canvas": Stage("canvas", RUN | EV, _model("canvas"), ("train",), {"selector": {"ratios": [0.6, 0.8]}}),
        "inference": Stage(
            "inference",
            RUN,
            run + options(requests="given/requests.json", out="asked/inference.json"),
            ("train",),
        ),
        "decode": Stage(
            "decode",
            RUN | MED,
            _model("decode", canvas="canvas/canvas.jsonl", info="decode/decoding.json"),
            ("train", "canvas"),
            {"steps": 3},
        ),
    }


def _results() -> dict[str, Stage]:
    scored = options(testset=TEST, comet="given/comet", store="store/scores")
    return {
        "comet_scores": Stage(
            "comet_scores",
            SCORE,
            scored + options(hypotheses='["decode/decode.jsonl"]', out="asked/comet.json"),
            ("train", "canvas", "decode"),
        ),
        "score": Stage(
            "score",
            SCORE,
            scored + options(hypotheses="decode/decode.jsonl", segments="score/s.jsonl", system="score/s.json"),
            ("train", "canvas", "decode"),
            {"revision": 2},
        ),
        "table": Stage("report", {}, _report("tables/main")),
        "figure": Stage("report", {}, _report("figures/hero")),
        "ratings": Stage(
            "human_ratings",
            {"annotators": ["A"]},
            options(
                pack="given/pack.json",
                mapping="given/mapping.json",
                forms="given/en-zh.A.csv",
                folder="given",
                out="ratings/ratings.jsonl",
            ),
        ),
    }


def given() -> None:
    """Write what the chain starts from, into the working folder."""
    import fake_ratings
    from tiny_checkpoints import SOURCES, write
    from tiny_training import ROWS

    from entropy_valley.demo import annotators, toy_comet
    from entropy_valley.demo.settings import Estimator
    from entropy_valley.human_evaluation import forms, pack

    texts = zip(SOURCES[::7], SOURCES[::-7], strict=False)
    rows = [{"id": f"s{n}", "source": source, "target": target} for n, (source, target) in enumerate(texts)]
    files.write_jsonl(TEST, rows)
    files.write_jsonl(TRAIN, ROWS)
    for language in ("en", "zh"):
        files.write_text(f"given/own.{language}", "".join(f"{language} {number}\n" for number in range(20)))
    write(Path(BACKBONE), "llada", eos=4)
    config = Estimator(seed=1, steps=1, width=16, heads=2, vocabulary=300)
    comet = Path("given/comet")
    toy_comet.write_checkpoint(toy_comet.new_model(comet, toy_comet.train_tokenizer(SOURCES, config), config), comet)
    files.write_json("given/requests.json", [ASKED])
    files.write_json("given/table.json", fake_results.write(Path("given/cells"), sentences=20))
    fake_ratings.write_pack(Path("given/pack.json"), Path("given/mapping.json"))
    made = pack.Pack.read(Path("given/pack.json"))
    forms.write_csv(Path("given/en-zh.A.csv"), made, annotators.ratings(made, "A", seed=1))
