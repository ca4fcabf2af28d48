"""One pass of a training, forward and backward, on random weights: its time and its memory."""

from __future__ import annotations

import os
import time
from typing import Any

import torch

from entropy_valley.model.families import Family
from entropy_valley.model.packing import Packed
from entropy_valley.training import lora, memory, processes
from entropy_valley.training.loss import MicroBatch, cross_entropies
from entropy_valley.training.settings import Lora

LENGTH = 64  # tokens of a pair, prompt and target


class TrainingPass:
    """A frozen ``model`` with random weights, and adapters on it as in a training."""

    def __init__(self, model: Any, family: Family, settings: Lora, plan: memory.Plan) -> None:
        os.environ.setdefault("DS_ACCELERATOR", model.device.type)  # PEFT imports DeepSpeed, which looks for a device
        self._model, self._shifted = model, family.shifted
        self._adapted = lora.attach(model, family, settings, seed=0).train()
        if plan.activation_checkpointing:
            lora.checkpoint_activations(model)

    def run(self, tokens: int) -> tuple[float, int | None]:
        """The seconds of a pass of about ``tokens`` tokens, and the bytes it adds without gradients; None on a CPU."""
        device, cuda = self._model.device, self._model.device.type == "cuda"
        batch = _batch(tokens, self._model.config.vocab_size).to(device)
        before = _synchronised() if cuda else 0
        started = time.perf_counter()
        with processes.fast_kernels(device):
            (cross_entropies(self._model, batch, self._shifted) @ batch.weights).backward()
        if cuda:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - started
        gradients = sum(part.grad.numel() * part.grad.element_size() for part in lora.trainable(self._adapted))
        self._adapted.zero_grad()
        return seconds, torch.cuda.max_memory_allocated() - before - gradients if cuda else None


def _synchronised() -> int:
    """Wait for the GPU and begin to measure its peak; the bytes that are allocated now."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def _batch(tokens: int, vocabulary: int) -> MicroBatch:
    """Random sequences, of which as many tokens are predicted as the plan of a training expects at most."""
    count = max(1, tokens // LENGTH)
    ids = torch.randint(vocabulary, (1, count * LENGTH), generator=torch.Generator().manual_seed(0))
    positions = torch.arange(LENGTH).repeat(count)
    rows = (positions >= (1 - memory.PREDICTED) * LENGTH).nonzero()[:, 0]
    packed = Packed(ids, positions[None], (LENGTH,) * count)
    return MicroBatch(packed, rows, ids[0, rows], torch.full((len(rows),), 1 / len(rows)))
