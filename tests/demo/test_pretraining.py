import pytest
import torch
from tiny_training import ROWS

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo import pretraining
from entropy_valley.model.load import load_backbone

SPEC = {
    "family": "dream",
    "seed": 1,
    "prompts": {"en-de": "German: {src}\n", "de-en": "English: {src}\n"},
    "bos": False,
    "pretraining": {
        "steps": 20,
        "batch": 8,
        "learning_rate": 0.01,
        "warmup": 0.05,
        "weight_decay": 0.01,
        "optimizer": "muon",
        "dropout": 0.1,
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


@pytest.fixture
def corpora(tmp_path):
    paths = {direction: tmp_path / f"{direction}.jsonl" for direction in SPEC["prompts"]}
    files.write_jsonl(paths["en-de"], ROWS)
    files.write_jsonl(paths["de-en"], ({**row, "source": row["target"], "target": row["source"]} for row in ROWS))
    return paths


@pytest.fixture
def pretrain(corpora):
    torch.set_num_threads(1)

    def run(family, root):
        folders = {"out": root / "out", "work": root / "work", "logs": root / "logs"}
        pretraining.pretrain(
            pretraining.PretrainingJob(SPEC | {"family": family}, corpora, corpora, **folders, checkpoint_every=5)
        )
        return root / "out"

    return run


def test_one_that_diverges_ends_with_its_step(pretrain, tmp_path, monkeypatch):
    monkeypatch.setitem(SPEC["pretraining"], "learning_rate", 1e30)
    with pytest.raises(InputError, match=r"out: the loss is not finite at step [2-9] of 20 \(loss (nan|inf), "):
        pretrain("dream", tmp_path)


@pytest.mark.parametrize(("key", "value", "apart"), [("precision", "bfloat16", 1e-2), ("optimizer", None, 0.5)])
def test_another_setting_gives_other_losses_that_are_near(corpora, tmp_path, key, value, apart):
    other = SPEC | {"pretraining": SPEC["pretraining"] | {key: value}}
    losses, changed = (
        pretraining.first_losses(pretraining.PretrainingJob(spec, corpora, corpora, *[tmp_path] * 3, 1), 5)
        for spec in (SPEC, other)
    )
    assert losses[1:] != changed[1:] and changed == pytest.approx(losses, rel=apart)


@pytest.mark.parametrize(("family", "views"), [("dream", {"all_mask", "random_t"}), ("llama3", {"next_token"})])
def test_broken_off_and_resumed_gives_the_same_bytes(pretrain, family, views, tmp_path, monkeypatch):
    """Wherever it is killed: tests/faults."""
    step, left = pretraining._step, iter(range(7))

    def ending(*arguments):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return step(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pretraining, "_step", ending)
        pretrain(family, tmp_path / "begun")
    assert (tmp_path / "begun" / "work" / "state.pt").exists() and not (tmp_path / "begun" / "out").exists()
    whole, resumed = pretrain(family, tmp_path / "whole"), pretrain(family, tmp_path / "begun")
    for path in sorted(whole.iterdir()):
        assert path.read_bytes() == (resumed / path.name).read_bytes(), path.name
    dev = files.read_json(whole / "checkpoint.json")["dev"]
    assert load_backbone(whole, family).context == 96
    assert dev.keys() == SPEC["prompts"].keys() and all(report.keys() == views for report in dev.values())
    assert all(0 < value < 5.7 for report in dev.values() for value in report.values())  # ln 300
