import os

import pytest
import torch
from tiny_training import ROWS, RUN

from entropy_valley import files
from entropy_valley.experiment.demo.pretraining import new_model, train_tokenizer
from entropy_valley.model.checkpoint import write_checkpoint
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone
from entropy_valley.training import sft

# PEFT imports DeepSpeed, which looks for an accelerator unless it is told.
os.environ["DS_ACCELERATOR"] = "cpu"


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """A tiny random checkpoint folder of each family, its weights wide enough for logits to differ."""
    root = tmp_path_factory.mktemp("checkpoints")
    for name, family in FAMILIES.items():
        tokenizer = train_tokenizer([row["source"] for row in ROWS], 300, family)
        model = new_model(
            name, vocabulary=len(tokenizer), width=16, layers=2, heads=2, kv_heads=1, ffn=24, context=96, seed=3
        )
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(8 if parameter.dim() == 2 else 1)
        write_checkpoint(model, family, tokenizer, root / name)
    return root


@pytest.fixture
def load(checkpoints):
    """Load a fresh tiny backbone by family name: attaching an adapter changes it."""
    return lambda family="llada", **options: load_backbone(checkpoints / family, family, **options)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "train.jsonl"
    files.write_jsonl(path, ROWS)
    return path


@pytest.fixture
def finetune(joined, checkpoints, corpus, tmp_path):
    """Train in this process; the adapter's folder."""

    def run(job, root=None, **options):
        root = root or tmp_path / files.digest(job)
        folders = {"out": root / "adapter", "work": root / "work", "logs": root / "logs"}
        execution = {"checkpoint_every": 2} | RUN | options
        sft.finetune(sft.Finetuning(job, corpus, checkpoints / job["family"], **folders, **execution))
        return root / "adapter"

    return run


@pytest.fixture
def broken_off(finetune, monkeypatch):
    """A training in this process that ends at its eighth step, after its third checkpoint."""
    step = sft._Trainer.step

    def ending(trainer, number):
        if number == 7:
            raise KeyboardInterrupt
        return step(trainer, number)

    def run(job, root, **options):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(sft._Trainer, "step", ending)
            finetune(job, root, **options)

    return run
