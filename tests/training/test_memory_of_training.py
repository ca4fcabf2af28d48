"""The memory of a training: the model of it against a count over tensors that have sizes but no data."""

from dataclasses import replace

import pytest
import torch
from held import Held
from tiny_training import REPOSITORY, RUN, SETTINGS, batches_of, spec
from torch._subclasses.fake_tensor import FakeTensorMode

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model import attention
from entropy_valley.model.attention import Packed
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import empty_model
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.training import deepspeed, memory, sft
from entropy_valley.training.adapter import attach_lora, trainable
from entropy_valley.training.loss import MicroBatch, cross_entropies
from entropy_valley.training.settings import Lora, Training

LORA = Lora(rank=64, alpha=128, dropout=0.05)
WIDE = {"rank": 512, "alpha": 4, "dropout": 0.0}
FREE = {24: int(24.8e9), 40: int(41.9e9), 80: int(84.4e9)}  # bytes on an empty GPU, by the GB in its name


def released(name, layers=None):
    """A released backbone on ``meta``."""
    family = FAMILIES[name]
    config = {"max_position_embeddings": 2048, "tie_word_embeddings": False, **family.releases[0].config}
    return empty_model(family, config | ({"num_hidden_layers": layers} if layers else {}), torch.bfloat16)


def demand(name, layers=None, processes=8, attention=BOTH_WAYS):
    return memory.demand(released(name, layers), FAMILIES[name], LORA, processes, attention)


def counted(name, layers, tokens, checkpointing, prefix, monkeypatch):
    """Bytes that forward and backward of a pass add to the weights; 60 % of its tokens are predicted. Of 64 rows each
    ``prefix`` attend to one another alone."""
    monkeypatch.setattr(attention, "has_kernel", lambda query: True)
    # On a GPU dropout keeps a mask of one byte, on a CPU one of the states' size.
    dropout = "torch.nn.functional.dropout"
    monkeypatch.setattr(dropout, lambda x, p, training, _: torch.native_dropout(x, p, training)[0])
    model = released(name, layers).requires_grad_(False)
    adapted = attach_lora(model, FAMILIES[name], LORA, 1).train()
    model.recompute = checkpointing
    held = Held()
    with FakeTensorMode(allow_non_fake_inputs=True):
        adapted.to_empty(device="cpu")
        ids = torch.zeros(1, tokens, dtype=torch.long)
        rows = torch.zeros(round(memory.PREDICTED * tokens), dtype=torch.long)
        packed = Packed(ids, ids, (64,) * (tokens // 64), (prefix,) * (tokens // 64))
        batch = MicroBatch(packed, rows, rows, rows.float())
        held.leave_out([*adapted.parameters(), *adapted.buffers()])
        with held:
            (cross_entropies(model, batch, FAMILIES[name].shifted) @ batch.weights).backward()
    gradients = sum(4 * parameter.numel() for parameter in trainable(adapted))
    return held.peak - gradients


@pytest.mark.parametrize(
    ("name", "checkpointing", "prefix"),
    [
        ("llada", False, 0),
        ("dream", False, 0),
        ("a2d_qwen3", False, 0),
        ("llada", False, 60),
        ("llada", True, 0),
        ("diffullama", True, 60),
    ],
)
def test_a_pass_holds_what_is_said(monkeypatch, name, checkpointing, prefix):
    """Not more; with 3 layers up to 15 % less: the last one is computed only where a token is predicted."""
    demanded = demand(name, 3, attention=PREFIX if prefix else BOTH_WAYS)
    held = counted(name, 3, 1024, checkpointing, prefix, monkeypatch)
    assert held <= demanded.of(1024, checkpointing) - demanded.fixed < 1.15 * held


def test_adapters_and_optimiser_hold_what_is_said(process_group, load):
    """Counted over the backward pass of the second step."""
    backbone, wide = load(), Training.model_validate(SETTINGS | RUN | {"precision": "float32", "lora": WIDE})
    fixed = memory.demand(backbone.model, backbone.family, wide.lora, 1).fixed
    model = attach_lora(backbone.model, backbone.family, wide.lora, seed=1)
    frozen = sum(4 * weight.numel() for weight in model.parameters() if not weight.requires_grad)
    held = Held()
    with held:
        run = deepspeed.build(deepspeed.Objective(model, backbone.shifted).train(), wide, 8)
        trainer = sft._Trainer(run, batches_of(backbone), rank=0, world=1)
        trainer.step(0)
        held.peak = held.now
        run.backward(run(trainer.batches[1][0])[0], scale_wrt_gas=False)
    assert frozen + held.peak == pytest.approx(fixed, rel=0.02)


@pytest.mark.parametrize(
    ("name", "size", "processes"),
    [*(("llada", size, processes) for size in (80, 40, 24) for processes in (8, 1)), ("dream", 40, 8)],
)
def test_what_auto_gives_is_documented(name, size, processes):
    plan = memory.plan(replace(demand(name, processes=processes), free=FREE[size]), "auto", "auto", 1024)
    spared = "on" if plan.activation_checkpointing else "off"
    label = {"llada": "LLaDA", "dream": "Dream"}[name]
    row = f"| {size} GB | {label} | {processes} | {plan.micro_tokens:,} | {spared} | {plan.expected / 1e9:.1f} GB |"
    assert row in (REPOSITORY / "docs" / "performance.md").read_text()


NEED = memory.Demand(fixed=1000, kept=10, spared=1)


def planned(free, micro_tokens=2048, checkpointing="auto", longest=100):
    plan = memory.plan(replace(NEED, free=free), micro_tokens, checkpointing, longest)
    return plan.micro_tokens, plan.activation_checkpointing


def test_what_is_set_is_kept_or_refused():
    assert planned(30_000) == (2048, False)
    assert planned(20_000) == (2048, True)
    assert planned(30_000, checkpointing=True) == (2048, True)
    assert planned(30_000, micro_tokens=512, longest=2048) == (512, False)  # a long pair that runs alone
    assert planned(20_000, micro_tokens=512, longest=2048) == (512, True)
    assert planned(20_000, micro_tokens="auto", longest=2048) == (memory.MOST, True)
    assert memory.plan(None, "auto", "auto", 9999) == memory.PassPlan(memory.MOST, False)  # on a CPU
    with pytest.raises(InputError, match=r"2048 tokens without .*`training.activation_checkpointing: true`"):
        planned(20_000, checkpointing=False)
    with pytest.raises(InputError, match=r"2048 tokens with activation .*Lower `training.micro_tokens`"):
        planned(3_000)


@pytest.fixture
def small_gpu(load, monkeypatch):
    """A GPU on which a pass of ``tokens`` fits, or with ``spared`` only with activation checkpointing."""
    monkeypatch.setattr(memory, "HEADROOM", 0)
    monkeypatch.setattr(memory, "LEAST", 16)
    lora = Lora(**spec(dropout=0.3)["training"]["lora"])
    need = memory.demand(load().model, FAMILIES["llada"], lora, 1)

    def give(tokens, spared=False):
        monkeypatch.setattr(memory, "at_hand", lambda device: need.of(tokens, spared))

    return give


def test_a_training_that_goes_on_keeps_its_passes(finetune, broken_off, small_gpu, tmp_path):
    """On a smaller GPU it computes layers again instead: the passes decide what dropout draws."""
    job = spec(dropout=0.3)
    small_gpu(32)
    whole = finetune(job, micro_tokens="auto")
    broken_off(job, tmp_path / "begun", micro_tokens="auto")
    small_gpu(48, spared=True)
    resumed = finetune(job, tmp_path / "begun", micro_tokens="auto")
    for name in ("adapter_model.safetensors", "adapter.json"):
        assert (whole / name).read_bytes() == (resumed / name).read_bytes()
    assert files.read_json(whole / "adapter.json")["micro_tokens"] == 32
    runs = [files.read_json(folder.parent / "logs" / "run.json") for folder in (whole, resumed)]
    assert [(run["micro_tokens"], run["activation_checkpointing"]) for run in runs] == [(32, False), (32, True)]


def test_a_gpu_out_of_memory_says_what_to_set(finetune, monkeypatch):
    def fail(trainer, number):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore lines")

    monkeypatch.setattr(sft._Trainer, "step", fail)
    with pytest.raises(InputError, match=r"40 tokens .* 2.00 GiB\. Set `training.activation_checkpointing: true`"):
        finetune(spec())
