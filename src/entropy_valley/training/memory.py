"""What a training holds in the memory of its GPU, and the passes that fit into it.

The bytes of a token are counted from what torch keeps for the backward pass of a stock layer with LoRA beside its
weights. ``tests/training/test_memory_of_training.py`` compares them with a count over the real shapes.
"""

import contextlib
import resource
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from entropy_valley.errors import InputError
from entropy_valley.machine import amount
from entropy_valley.model.checkpoint import config_arguments
from entropy_valley.model.families import Family, find_family
from entropy_valley.model.load import empty_model, torch_dtype
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.texts import counted
from entropy_valley.training.adapter import lora_modules
from entropy_valley.training.deepspeed import BUCKET
from entropy_valley.training.settings import AUTO, Auto, Lora, Training

MOST = 8192  # tokens of a pass: larger ones are no faster
LEAST = 1024  # tokens of a pass: smaller ones leave the GPU waiting, and computing each layer again costs less
HEADROOM = 0.08  # share of the free memory for gaps between tensors and the workspaces of cuBLAS and NCCL
PREDICTED = 0.6  # share of a pass's tokens that are predicted: German from English, every slot masked


@dataclass(frozen=True)
class Demand:
    """Bytes of one process: ``fixed`` for weights, adapters and their optimiser; for each token of a pass ``spared``
    with activation checkpointing, ``kept`` without. ``free``: those of the GPU before anything is loaded, the fewest of
    all processes."""

    fixed: int
    kept: int
    spared: int
    free: int = 0

    def of(self, tokens: int, checkpointing: bool) -> int:
        """At most so many bytes while a pass of ``tokens`` runs."""
        return self.fixed + tokens * (self.spared if checkpointing else self.kept)

    def tokens(self, memory: float, checkpointing: bool) -> int:
        """The most tokens of a pass in ``memory`` bytes."""
        return int(memory - self.fixed) // (self.spared if checkpointing else self.kept)


def demand(
    model: Any, family: Family, settings: Lora, processes: int, attention: str = BOTH_WAYS, free: int = 0
) -> Demand:
    """The demand of a training of ``model``, which may be on ``meta`` and has no adapters yet."""
    from peft.utils.other import get_pattern_key

    adapters = widths = ranks = 0
    patterns = settings.rank_pattern
    for name in lora_modules(model, family, settings.targets):
        layer, rank = model.get_submodule(name), patterns.get(get_pattern_key([*patterns], name), settings.rank)
        adapters += rank * (layer.in_features + layer.out_features)
        widths, ranks = widths + layer.in_features, ranks + rank
    weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    # In float32 the adapters, DeepSpeed's flat copy and, divided over the processes, master copy, AdamW and gradients;
    # and two buckets on their way to other processes.
    fixed = weights + adapters * (8 + 16 // processes) + 2 * 4 * BUCKET
    config, layers = model.config, len(model.model.layers)
    # In all adapters: their inputs in float32, which of them dropout kept, and A x.
    inputs = 4 + (settings.dropout > 0)
    layer = _layer(model, attention) + (inputs * widths + 4 * ranks) // layers
    # At the head: logits, log-probabilities and gradients. In a layer: the gradients of its widest states.
    head, widest = int(PREDICTED * 12 * config.vocab_size), 8 * config.intermediate_size
    kept_inputs = layers * model.dtype.itemsize * config.hidden_size
    return Demand(fixed, layers * layer + max(head, widest), kept_inputs + max(head, layer + widest), free)


def _layer(model: Any, attention: str) -> int:
    """Bytes that a token leaves in a stock layer: normalised states, q, k, v, the attended, and three of the FFN. The k
    and v of a prefix are there twice: for its own rows, and for the others. Norms of q and k keep what they normalise.
    """
    config, size, projections = model.config, model.dtype.itemsize, model.model.layers[0].self_attn
    query, key = projections.q_proj.out_features, projections.k_proj.out_features
    attended = size * 2 * (query + key * (2 if attention == PREFIX else 1)) + 4 * config.num_attention_heads
    normalised = 4 * (2 * config.hidden_size + config.qk_norm * (query + key))
    return normalised + attended + 3 * size * config.intermediate_size


def demand_here(
    device: str, checkpoint: Path, family: str, settings: Training, attention: str = BOTH_WAYS
) -> Demand | None:
    """The demand of this training, and what is free; None on a CPU, whose memory is not measured."""
    free = at_hand(device)
    if free is None:
        return None
    kind = find_family(family)
    model = empty_model(kind, config_arguments(checkpoint, kind), torch_dtype(settings.precision))
    return demand(model, kind, settings.lora, settings.processes, attention, free)


def at_hand(device: str) -> int | None:
    """The free bytes of the GPU that has the fewest of all processes; None on a CPU."""
    if torch.device(device).type == "cpu":
        return None
    free = torch.tensor(torch.cuda.mem_get_info()[0], device=device)
    torch.distributed.all_reduce(free, torch.distributed.ReduceOp.MIN)
    return int(free)


@dataclass(frozen=True)
class PassPlan:
    """How the passes of a training run; ``expected`` bytes at most, None on a CPU."""

    micro_tokens: int
    activation_checkpointing: bool
    expected: int | None = None

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn an error of a GPU without memory into one that says what to set."""
        try:
            yield
        except torch.OutOfMemoryError as error:
            problem = f"a pass of {self.micro_tokens} tokens does not fit: {str(error).splitlines()[0].rstrip('.')}"
            raise InputError("the GPU's memory", problem, _remedy(self.activation_checkpointing)) from error


def plan(need: Demand | None, micro_tokens: int | Auto, checkpointing: bool | Auto, longest: int) -> PassPlan:
    """What to set for ``auto``, and whether what is set fits.

    A pair of ``longest`` tokens must fit too: it runs alone. Layers are computed again in the backward pass only if
    else fewer than ``LEAST`` tokens would fit. Raises InputError if nothing fits.
    """
    if need is None:
        return PassPlan(MOST if micro_tokens == AUTO else micro_tokens, checkpointing is True)
    most = (1 - HEADROOM) * need.free
    choices = (False, True) if checkpointing == AUTO else (checkpointing,)
    wanted = max(LEAST if micro_tokens == AUTO else micro_tokens, longest)
    for spared in choices:
        if need.of(wanted, spared) <= (need.free if spared == choices[-1] else most):
            fitting = min(MOST, need.tokens(most, spared) // LEAST * LEAST)
            tokens = max(LEAST, fitting) if micro_tokens == AUTO else micro_tokens
            return PassPlan(tokens, spared, need.of(max(tokens, longest), spared))
    needed, fixed = amount(need.of(wanted, spared)), amount(need.fixed)
    passes = f"a pass of {wanted} tokens {'with' if spared else 'without'} activation checkpointing"
    problem = f"{amount(need.free)} are free; {passes} needs {needed}, {fixed} of them for weights and adapters"
    raise InputError("the GPU's memory", problem, _remedy(spared))


def _remedy(checkpointing: bool) -> str:
    if checkpointing:
        most = "`training.micro_tokens` and `training.max_tokens`"
        return f"Lower {most}, or use a GPU with more memory. A training with other settings begins anew."
    return "Set `training.activation_checkpointing: true`. This changes no number; a training that has begun goes on."


def measured(device: str, plan: PassPlan) -> dict[str, Any]:
    """The bytes that a training took at most, beside its plan and its device: what differs from run to run, and so is
    not among the adapter's files.

    All processes call it: bytes are the most of any of them.
    """
    if device == "cuda":
        name, peak = torch.cuda.get_device_name(), torch.cuda.max_memory_allocated()
    else:
        name = f"cpu, {counted(torch.get_num_threads(), 'thread')}"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    most = torch.tensor(peak, device=device)
    torch.distributed.all_reduce(most, torch.distributed.ReduceOp.MAX)
    return {
        "peak_memory_bytes": int(most),
        "expected_memory_bytes": plan.expected,
        "micro_tokens": plan.micro_tokens,
        "activation_checkpointing": plan.activation_checkpointing,
        "host": socket.gethostname(),
        "device": name,
    }
