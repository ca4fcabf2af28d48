from __future__ import annotations

import pytest
from tiny_training import ROWS, TEMPLATE, finish, kill_after, start

from entropy_valley import files
from entropy_valley.backbone.families import find_family
from entropy_valley.backbone.loading import load_backbone
from entropy_valley.backbone.prompt import Prompt
from entropy_valley.backbone.tokenizer import train_tokenizer
from entropy_valley.demo import pretraining
from entropy_valley.demo.settings import Pretraining
from entropy_valley.training import data

SPEC = {
    "family": "dream",
    "seed": 1,
    "prompts": {"en-de": "German: {src}\n", "de-en": "English: {src}\n"},
    "bos": False,
    "pretraining": {
        "steps": 150,
        "batch": 8,
        "learning_rate": 0.01,
        "warmup": 0.05,
        "weight_decay": 0.01,
        "all_mask_share": 0.3,
        "vocabulary": 300,
        "width": 16,
        "layers": 2,
        "heads": 2,
        "kv_heads": 1,
        "ffn": 24,
        "context": 96,
    },
}


def pretrain(family, corpora, root):
    named = [f"{direction}={path}" for direction, path in corpora.items()]
    flags = ["--corpus", *named, "--dev", *named]
    paths = {"out": root / "out", "work": root / "work", "logs": root / "logs"}
    return start("pretrain", SPEC | {"family": family}, *flags, **paths, checkpoint_every=5)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "views"), [("dream", {"all_mask", "random_t"}), ("llama3", {"next_token"})])
def test_killed_and_resumed_gives_the_same_bytes(tmp_path, family, views):
    corpora = {direction: tmp_path / f"{direction}.jsonl" for direction in SPEC["prompts"]}
    files.write_jsonl(corpora["en-de"], ROWS)
    files.write_jsonl(corpora["de-en"], ({**row, "source": row["target"], "target": row["source"]} for row in ROWS))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    uninterrupted = pretrain(family, corpora, whole)
    kill_after(pretrain(family, corpora, killed), killed / "work" / "state.pt")
    assert not (killed / "out").exists()
    finish(pretrain(family, corpora, killed))
    finish(uninterrupted)
    for path in sorted((whole / "out").iterdir()):
        assert path.read_bytes() == (killed / "out" / path.name).read_bytes(), path.name
    backbone = load_backbone(whole / "out", family)
    dev = files.read_json(whole / "out" / "checkpoint.json")["dev"]
    assert backbone.context == 96
    assert dev.keys() == corpora.keys() and all(report.keys() == views for report in dev.values())
    assert all(0 < value < 5.7 for report in dev.values() for value in report.values())  # ln 300


@pytest.mark.parametrize(("family", "padding", "extra"), [("llada", 0, 0), ("llada", 3, 3), ("llama3", 3, 0)])
def test_eos_padding_is_laid_out_for_masked_families(family, padding, extra):
    family = find_family(family)
    tokenizer = train_tokenizer([row["source"] for row in ROWS], 300, family)
    pairs = data.tokenise(ROWS, Prompt(TEMPLATE, tokenizer), tokenizer.eos_token_id, 96)
    settings = Pretraining(seed=1, **SPEC["pretraining"] | {"eos_padding": padding})
    batches = pretraining._batches(family, tokenizer, pairs, settings, 8, 1.0)
    for step in range(len(batches.order)):
        (batch,) = batches[step]
        assert batch.packed.lengths == tuple((batches.pairs.lengths[batches.order[step]] + extra).tolist())
        assert (batch.labels == tokenizer.eos_token_id).sum() == len(batch) * (1 + extra)
