"""How fast the device is, whether each configured backbone fits, and what a sentence and a training step will cost."""

from __future__ import annotations

import dataclasses
import gc
import statistics
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import linear

from entropy_valley.checking import subject
from entropy_valley.checking.line import Check, CheckError, SkippedError
from entropy_valley.checking.machine import GB, memory
from entropy_valley.checking.sizes import BYTES, Size
from entropy_valley.checking.subject import Subject
from entropy_valley.checking.training_pass import TrainingPass
from entropy_valley.decoding import latency
from entropy_valley.decoding.engine import BUDGET, Engine
from entropy_valley.decoding.kernels import HEAD_ROWS
from entropy_valley.decoding.requests import Canvas, Queue
from entropy_valley.model import checkpoint
from entropy_valley.model.families import find_family
from entropy_valley.model.load import Backbone, empty_model, torch_dtype
from entropy_valley.training.memory import Demand, Plan, Room, demand, plan
from entropy_valley.training.settings import Lora

# EV with T = 32 on the sentences of WMT22 En→Zh, by `benchmarks/decoding.py --shapes whole-test-set`.
SENTENCE_TOKENS, SENTENCE_ROWS = 1121, 235
PAIR_TOKENS, PAIR_PREDICTED = 70, 15  # of WMT19: prompt and target; half of the target's tokens are masked
PROMPT, MASKS = 24, 16  # of the canvases of a pass that is timed
_CPU_TOKENS = 1024  # of a training's pass that is timed on a CPU
_CPU_MEMORY = 0.5e9  # bytes of weights: on a CPU, a larger backbone is not run


class Speed:
    """The speed of the device's matrix products, and of a pass of each backbone; measured once."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.rate = subject, 0.0

    def checks(self) -> Iterator[tuple[str, Check]]:
        """The speed, then memory and costs of each backbone."""
        yield "speed", self.products
        for name, backbone in self.subject.backbones.items():
            yield f"memory {name}", lambda backbone=backbone: self.fits(backbone)
        for name, backbone in self.subject.backbones.items():
            yield f"pass {name}", lambda backbone=backbone: self.decoding(backbone)
            yield f"training {name}", lambda backbone=backbone: self.training(backbone)
            yield f"cost {name}", lambda backbone=backbone: self.costs(backbone)

    @torch.inference_mode()
    def products(self) -> str:
        """Floating-point operations a second of a large product, in the precision of decoding."""
        device, precision = self.subject.device, self.subject.precision
        rows, width, ffn = (2048, 4096, 12288) if device == "cuda" else (256, 512, 1536)
        states, other = (torch.randn(count, width, device=device).to(torch_dtype(precision)) for count in (rows, ffn))
        seconds = [latency.seconds(lambda: linear(states, other), device) for _ in range(20)]
        self.rate = 2 * rows * width * ffn / statistics.median(seconds[5:])
        return f"{self.rate / 1e9:,.0f} GFLOP/s in {precision} products"

    def fits(self, backbone: dict[str, Any]) -> str:
        """Weights and the largest pass are within the device's memory; a checkpoint that is there is the whole one."""
        size, item, device = _size(backbone), BYTES[self.subject.precision], self.subject.device
        checked = _headers(backbone, self.subject.precision)
        fill = self.subject.fill
        rows = (HEAD_ROWS[device],) if fill else ()
        parts = size.parameters * item, size.pass_bytes(fill or BUDGET[device], item, *rows)
        whole, there = sum(parts), memory(device)
        said = (
            f"{parts[0] / GB:.2f} GB of weights and {parts[1] / GB:.2f} GB for a pass, of {there / GB:.1f} GB{checked}"
        )
        if whole > there:
            raise CheckError(f"{said}: it does not fit this device")
        return said

    def decoding(self, backbone: dict[str, Any]) -> str:
        """A pass as the jobs run it, with as many canvases as it takes, of a model with random weights."""
        size, device, fill = _size(backbone), self.subject.device, self.subject.fill
        if find_family(backbone["family"]).causal:
            raise SkippedError("an autoregressive backbone is decoded by transformers")
        model = random_model(backbone, self.subject)
        engine = Engine(model, fill=fill, compile_layers=self.subject.compile_layers)
        budget, canvases = engine.budget, engine.budget // (PROMPT + MASKS)
        _read(engine, canvases)
        seconds = latency.seconds(lambda: _read(engine, canvases), device)
        tokens = canvases * (PROMPT + MASKS)
        if engine.budget < budget:
            raise CheckError(f"a pass of {tokens} tokens is too large for this device's memory")
        peak = f", {torch.cuda.max_memory_allocated() / GB:.1f} GB in all" if device == "cuda" else ""
        if device == "cuda":
            peak += f", {waits(lambda: _read(engine, canvases))} waits for the GPU"
        share = size.pass_work(tokens, canvases * MASKS) / seconds / (self.rate or 1)
        sentence, padded = seconds * SENTENCE_TOKENS / tokens, f" padded to {fill}" if fill else ""
        return (
            f"{tokens} tokens{padded} in {seconds:.3f} s ({100 * share:.0f} % of the products' speed){peak}: "
            f"a sentence (EV, T = 32) takes about {sentence:.3f} s"
        )

    def training(self, backbone: dict[str, Any]) -> str:
        """A pass of a training, as its training would choose it, fits beside the optimiser."""
        training, device, processes = self.subject.training, self.subject.device, self.subject.processes
        if not training:
            raise SkippedError("nothing is trained")
        need, chosen = self._demand(backbone), self._plan(backbone)
        said = f"{chosen.micro_tokens} tokens a pass{', activation checkpointing' * chosen.activation_checkpointing}"
        tokens = chosen.micro_tokens if device == "cuda" else _CPU_TOKENS
        frozen = random_model(backbone, dataclasses.replace(self.subject, precision=training["precision"]))
        one = TrainingPass(frozen.model, frozen.family, Lora(**training["lora"]), chosen)
        with chosen.explained():
            seconds, added = [one.run(tokens) for _ in range(2)][-1]
        if added is not None:
            said += f", {(need.fixed + added) / GB:.1f} GB in all, {chosen.expected / GB:.1f} GB expected"
        if added is not None and need.fixed + added > memory(device):
            raise CheckError(f"{said}: more than the GPU has; set `training.activation_checkpointing: true`")
        step = seconds * training["global_batch"] * PAIR_TOKENS / tokens / processes
        said += f"; a step ({training['global_batch']} pairs, {processes} processes) takes about {step:.3f} s"
        return said

    def _demand(self, backbone: dict[str, Any]) -> Demand:
        _size(backbone)  # is it known?
        training, family = self.subject.training, find_family(backbone["family"])
        model = empty_model(family, subject.arguments(backbone), torch_dtype(training["precision"]))
        return demand(model, family, Lora(**training["lora"]), self.subject.processes)

    def _plan(self, backbone: dict[str, Any]) -> Plan:
        """The passes of a training on the GPU as it is now; no pair is longer than they are."""
        training, room = self.subject.training, None
        if self.subject.device == "cuda":
            torch.cuda.empty_cache()
            room = Room(torch.cuda.mem_get_info()[0], self._demand(backbone))
        return plan(room, training["micro_tokens"], training["activation_checkpointing"], longest=1)

    def costs(self, backbone: dict[str, Any]) -> str:
        """What the matrix products alone will take; no run is faster."""
        size, training, said = _size(backbone), self.subject.training, []
        if not self.rate:
            raise SkippedError("the speed was not measured")
        if not find_family(backbone["family"]).causal:
            sentence = size.pass_work(SENTENCE_TOKENS, SENTENCE_ROWS) / self.rate
            said.append(f"a sentence (EV, T = 32) {sentence:.4f} s")
        if training:
            pairs, processes = training["global_batch"], self.subject.processes
            recomputed = self._plan(backbone).activation_checkpointing
            step = size.step_work(pairs * PAIR_TOKENS, pairs * PAIR_PREDICTED, recomputed) / self.rate / processes
            said.append(f"a training step ({pairs} pairs, {processes} processes) {step:.3f} s")
        return f"if it were matrix products alone: {'; '.join(said)}" if said else "nothing is computed with it"


def _size(backbone: dict[str, Any], **other: Any) -> Size:
    if not (arguments := subject.arguments(backbone)):
        raise SkippedError("its size is not known before it is downloaded")
    return Size.of(arguments | other)


def _headers(backbone: dict[str, Any], precision: str) -> str:
    """Raise InputError for a checkpoint folder that lacks tensors; no weight is read."""
    folder, family = Path(backbone["folder"]), find_family(backbone["family"])
    if not (folder / "config.json").is_file():
        return ""
    checkpoint.check(empty_model(family, subject.arguments(backbone), torch_dtype(precision)), family, folder)
    return "; the checkpoint is whole"


def random_model(backbone: dict[str, Any], of: Subject, **other: Any) -> Backbone:
    """A model of the backbone's shape with random weights; its last two tokens stand for mask and EOS. ``other``:
    arguments of its config class that differ.

    Raises SkippedError where the shape is not known, and for a model that is too large for a check on a CPU.
    """
    size = _size(backbone, **other)
    if of.device == "cpu" and size.parameters * BYTES[of.precision] > _CPU_MEMORY:
        raise SkippedError("too large to be run on a CPU for a check")
    if of.device == "cuda":
        gc.collect()  # the model of the check before: a GPU may have no room for two
        torch.cuda.empty_cache()
    family, arguments = find_family(backbone["family"]), subject.arguments(backbone) | other
    model = empty_model(family, arguments, torch_dtype(of.precision), of.device).eval().requires_grad_(False)
    mask, eos = arguments["vocab_size"] - 1, arguments["vocab_size"] - 2
    return Backbone(family, model, None, mask, eos, None, "", family.shifted)


def _read(engine: Engine, canvases: int) -> None:
    """One pass: the all-mask canvases of so many sentences."""
    if engine.backbone.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    list(engine.run(Queue((place, Canvas([place % 100] * PROMPT, MASKS)) for place in range(canvases))))


def waits(task: Callable[[], Any]) -> int:
    """How often the host waits for the GPU in a task; one pass of the engine needs one wait."""
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            task()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing CUDA operation" in str(one.message) for one in caught)
