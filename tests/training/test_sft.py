from __future__ import annotations

import math

import pytest
import torch
from tiny_training import TEMPLATE, canvases_of, finish, kill_after, start
from transformers import get_cosine_schedule_with_warmup

from entropy_valley import files
from entropy_valley.config.training import Training
from entropy_valley.errors import InputError
from entropy_valley.training import adapter, engine, lora, processes, sft
from entropy_valley.training.loss import cross_entropies

SETTINGS = {
    "max_steps": 8,
    "global_batch": 8,
    "micro_batch": 2,
    "learning_rate": 0.01,
    "warmup": 0.1,
    "weight_decay": 0.01,
    "betas": [0.9, 0.95],
    "clip": 1.0,
    "max_tokens": 96,
    "lora": {"rank": 2, "alpha": 4, "dropout": 0.0},
}


def spec(processes=1, dropout=0.0, **training):
    return {
        "backbone": "tiny",
        "family": "llada",
        "direction": "en-de",
        "seed": 1,
        "prompt": TEMPLATE,
        "bos": False,
        "precision": "float32",
        "processes": processes,
        "training": SETTINGS | {"lora": SETTINGS["lora"] | {"dropout": dropout}} | training,
    }


@pytest.fixture(scope="session")
def process_group():
    assert processes.join("cpu", 1) == 0
    yield
    processes.leave()


def plain(backbone, settings, steps):
    """The same training by torch alone, each batch in one piece; losses and adapter."""
    model = lora.attach(backbone.model, backbone.family, settings.lora, seed=1).train()
    parameters, canvases = lora.trainable(model), canvases_of(backbone)
    optimizer = torch.optim.AdamW(
        parameters, lr=settings.learning_rate, betas=settings.betas, weight_decay=settings.weight_decay
    )
    schedule = get_cosine_schedule_with_warmup(optimizer, math.ceil(settings.warmup * steps), steps)
    losses = []
    for step in range(steps):
        (batch,) = canvases[step]
        loss = cross_entropies(model.get_base_model(), batch, backbone.shifted) @ batch.weights
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, settings.clip)
        optimizer.step(), schedule.step(), optimizer.zero_grad()
        losses.append(loss.item())
    return losses, adapter.tensors(model)


def test_the_engine_follows_plain_torch(process_group, load):
    """Accumulation over micro-batches of unequal size, one of them empty at the end of an epoch, changes nothing."""
    settings = Training.model_validate(SETTINGS | {"precision": "float32", "processes": 1})
    expected, weights = plain(load(), settings, steps := 8)
    backbone = load()
    model = lora.attach(backbone.model, backbone.family, settings.lora, seed=1)
    run = engine.build(engine.Objective(model, backbone.shifted).train(), settings, steps)
    canvases = canvases_of(backbone, parts=4)
    assert [1, 1, 0, 0] in [[len(part) for part in canvases[step]] for step in range(steps)]
    trainer = sft._Trainer(run, canvases, rank=0, world=1)
    found = [trainer.step(step)["loss"] for step in range(steps)]
    assert found == pytest.approx(expected, rel=1e-4)
    for name, tensor in adapter.tensors(model).items():
        torch.testing.assert_close(tensor, weights[name], atol=1e-4, rtol=1e-3)


def test_zero2_config_has_no_key_that_casts_adapters():
    config = engine.zero2(Training.model_validate(SETTINGS | {"precision": "bfloat16", "processes": 2}))
    assert config["zero_optimization"]["stage"] == 2
    assert not {"bf16", "fp16", "amp", "torch_autocast"} & config.keys()
    assert config["gradient_accumulation_steps"] == 2


def test_too_few_gpus():
    with pytest.raises(InputError, match="GPUs wanted"):
        processes.join("cuda", torch.cuda.device_count() + 1)


def train(checkpoints, corpus, root, spec):
    return start(
        "train",
        spec,
        corpus=corpus,
        backbone=checkpoints / "llada",
        out=root / "adapter",
        work=root / "work",
        logs=root / "logs",
        checkpoint_every=2,
    )


@pytest.mark.slow
def test_killed_and_resumed_gives_the_same_bytes(checkpoints, corpus, tmp_path):
    job = spec(dropout=0.3, max_steps=40)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    uninterrupted = train(checkpoints, corpus, whole, job)  # side by side: no port is fought for
    kill_after(train(checkpoints, corpus, killed, job), killed / "work" / "last.json")
    assert not (killed / "adapter").exists()
    assert files.read_json(killed / "work" / "last.json")["progress"]["step"] < 40
    finish(train(checkpoints, corpus, killed, job))
    finish(uninterrupted)
    names = sorted(path.name for path in (whole / "adapter").iterdir())
    assert names == ["adapter.json", "adapter_config.json", "adapter_model.safetensors"]
    for name in names:
        assert (whole / "adapter" / name).read_bytes() == (killed / "adapter" / name).read_bytes(), name
    assert not (killed / "work").exists()
    assert files.read_json(killed / "logs" / "run.json")["peak_memory_bytes"] > 0


@pytest.mark.slow
def test_two_processes_train_what_one_does(checkpoints, corpus, tmp_path):
    from safetensors.torch import load_file

    one, two = (train(checkpoints, corpus, tmp_path / name, spec(count)) for name, count in (("one", 1), ("two", 2)))
    finish(one), finish(two)
    weights = [load_file(tmp_path / name / "adapter" / "adapter_model.safetensors") for name in ("one", "two")]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, atol=1e-4, rtol=1e-3)


@pytest.mark.slow
def test_another_job_starts_afresh(checkpoints, corpus, tmp_path):
    kill_after(train(checkpoints, corpus, tmp_path, spec(max_steps=40)), tmp_path / "work" / "last.json")
    finish(train(checkpoints, corpus, tmp_path, spec()))
    assert files.read_json(tmp_path / "adapter" / "adapter.json")["steps"] == 8
