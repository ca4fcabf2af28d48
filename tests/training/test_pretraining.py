from __future__ import annotations

import pytest
from tiny_training import ROWS, finish, kill_after, start

from entropy_valley import files
from entropy_valley.backbone.loading import load_backbone

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


def pretrain(corpora, root):
    named = [f"{direction}={path}" for direction, path in corpora.items()]
    flags = ["--corpus", *named, "--dev", *named]
    return start("pretrain", SPEC, *flags, out=root / "out", work=root / "work", logs=root / "logs", checkpoint_every=5)


@pytest.mark.slow
def test_killed_and_resumed_gives_the_same_bytes(tmp_path):
    corpora = {direction: tmp_path / f"{direction}.jsonl" for direction in SPEC["prompts"]}
    files.write_jsonl(corpora["en-de"], ROWS)
    files.write_jsonl(corpora["de-en"], ({**row, "source": row["target"], "target": row["source"]} for row in ROWS))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    uninterrupted = pretrain(corpora, whole)
    kill_after(pretrain(corpora, killed), killed / "work" / "state.pt")
    assert not (killed / "out").exists()
    finish(pretrain(corpora, killed))
    finish(uninterrupted)
    for path in sorted((whole / "out").iterdir()):
        assert path.read_bytes() == (killed / "out" / path.name).read_bytes(), path.name
    backbone = load_backbone(whole / "out", "dream")
    dev = files.read_json(whole / "out" / "checkpoint.json")["dev"]
    assert backbone.context == 96
    assert all(0 < dev[direction]["random_t"] < 5.7 for direction in corpora)  # ln 300
