"""From tokenised pairs to the loss: micro-batches, masked canvases, weighted cross-entropy."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy

from entropy_valley.model.attention import Packed, Rows, hidden_states
from entropy_valley.training import data
from entropy_valley.training.data import BatchLayout

if TYPE_CHECKING:
    from entropy_valley.training.settings import Loss

# --- Cutting a step's batch into micro-batches: by tokens, and evenly over the processes.


@dataclass(frozen=True)
class Passes:
    """Passes of at most ``tokens`` tokens (``eos_padding`` included), distributed over ``ranks``."""

    tokens: int = sys.maxsize
    ranks: int = 1

    def sizes(self, lengths: torch.Tensor, padding: int | str = 0) -> list[int]:
        """The number of sequences of each micro-batch (0 allowed), for a batch with these ``lengths``, shortest first
        if padded to the longest of a pass.

        Each rank runs the same, smallest possible number of micro-batches. Their largest is then made as small as
        possible, so that no rank waits long. A sequence of more than ``tokens`` runs alone.
        """
        uniform = padding == "batch"
        costs = (lengths if uniform else lengths + padding).tolist()
        limit = min(self.tokens, len(costs) * max(costs))
        count = -(-len(_filled(costs, limit, uniform)) // self.ranks) * self.ranks
        even = bisect.bisect_left(range(limit), True, key=lambda tokens: len(_filled(costs, tokens, uniform)) <= count)
        sizes = _filled(costs, even, uniform)
        return sizes + [0] * (count - len(sizes))


ONE_PASS = Passes()


def _filled(costs: list[int], limit: int, uniform: bool) -> list[int]:
    """Sizes of consecutive parts of at most ``limit``; with ``uniform`` a part is padded to its last sequence."""
    sizes, total = [0], 0
    for cost in costs:
        total = (sizes[-1] + 1) * cost if uniform else total + cost
        if sizes[-1] and total > limit:
            sizes.append(0)
            total = cost
        sizes[-1] += 1
    return sizes


# --- The weighted cross-entropy of both objectives, and micro-batches whose losses add up to the batch's loss.


@dataclass(frozen=True)
class MicroBatch:
    """The input of one forward pass: packed sequences, and the rows to predict.

    ``rows``, ``labels`` and ``weights`` are (predicted tokens,). The batch's loss is the sum of ``weights`` · CE over
    all micro-batches of a step on all ranks: the weights include the denominator.
    """

    packed: Packed
    rows: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor

    def __len__(self) -> int:
        """The number of sequences; 0 if a small last batch has none for this pass."""
        return len(self.packed.lengths)

    def to(self, device: torch.device | str) -> MicroBatch:
        input_ids, position_ids = self.packed.input_ids.to(device), self.packed.position_ids.to(device)
        packed = Packed(input_ids, position_ids, self.packed.lengths, self.packed.prefixes)
        return MicroBatch(packed, self.rows.to(device), self.labels.to(device), self.weights.to(device))


def slot_weights(
    masked: torch.Tensor,
    owner: torch.Tensor,
    times: torch.Tensor,
    targets: torch.Tensor,
    weight: str,
    normaliser: str,
    groups: torch.Tensor | None = None,
) -> torch.Tensor:
    """The factor of each slot's CE in the batch's loss, (rows,); 0 for slots that are not masked.

    ``weight``: "1/t" as in the likelihood bound, "none" for plain CE. ``normaliser``: "token" divides by sum |y|
    (LLaDA's loss up to a constant), "sequence" by |y| of the sequence and by the batch size, "masked" by the number of
    masked slots, "micro_batch" by that of the sequence's group (``groups``: its number, (batch,)) and by the number of
    groups.
    """
    factor = torch.reciprocal(times) if weight == "1/t" else torch.ones_like(times)
    if normaliser == "micro_batch":
        counts = torch.bincount(groups[owner[masked]], minlength=int(groups.max()) + 1)
        divisor = (counts.clamp(min=1) * len(counts))[groups]  # the mean of a group without masks is 0
    else:
        divisor = {
            "token": targets.sum().expand(len(targets)),
            "sequence": targets * len(targets),
            "masked": masked.sum().clamp(min=1).expand(len(targets)),
        }[normaliser]
    return (factor / divisor)[owner] * masked


def micro_batches(
    layout: BatchLayout,
    inputs: torch.Tensor,
    predicted: torch.Tensor,
    weights: torch.Tensor,
    sizes: list[int],
    prefixes: Sequence[int] = (),
) -> list[MicroBatch]:
    """Cut a batch into consecutive micro-batches of ``sizes`` sequences (0 allowed).

    ``inputs`` are the model's input tokens, ``predicted`` marks the layout's tokens that are labels, and ``weights``
    are the factors of their CE; all (rows,). ``prefixes`` has the rows of each sequence that attend to one another
    alone; none: all attend to everything.
    """
    lengths = layout.lengths.tolist()
    batches, first, start = [], 0, 0
    for size in sizes:
        part = tuple(lengths[first : first + size])
        cut = slice(start, start + sum(part))
        own = tuple(prefixes[first : first + size])
        packed = Packed(inputs[None, cut], layout.positions[None, cut], part, own)
        rows = predicted[cut].nonzero()[:, 0]
        batches.append(MicroBatch(packed, rows, layout.tokens[cut][rows], weights[cut][rows]))
        first, start = first + size, cut.stop
    return batches


def cross_entropies(model: Any, batch: MicroBatch, shifted: bool) -> torch.Tensor:
    """CE in nats of each predicted token, (predicted tokens,), float32; last layer and LM head compute only their rows.

    ``model`` is a stock ``…ForCausalLM``. Shifted and causal families predict token i from row i - 1. A prompt is never
    empty, so that row belongs to the same sequence.
    """
    states = hidden_states(model, batch.packed, Rows(batch.rows - int(shifted)))
    return cross_entropy(model.lm_head(states).float(), batch.labels, reduction="none")


# --- From tokenised pairs to micro-batches, step by step: masked canvases, or continuations for causal families.


@dataclass(frozen=True)
class Canvases:
    """The micro-batches of each step: a pure function of (seed, step).

    Masks are drawn for the whole batch before it is cut into micro-batches. The cut therefore changes only the order of
    floating-point sums, and with ``eos_padding: batch`` or ``time: minibatch`` what these settings refer to. ``prefix``
    says how many rows of a prompt of so many tokens attend to one another alone; None: all rows attend to everything.
    """

    pairs: data.Pairs
    order: data.Batches
    settings: Loss
    mask_id: int
    seed: int
    passes: Passes = ONE_PASS
    all_mask_share: float = 0.0
    prefix: Callable[[int], int] | None = None

    def __getitem__(self, step: int) -> list[MicroBatch]:
        indices, random = self.order[step], data.stream(self.seed, "canvas", step)
        groups = data.draw_groups(len(indices), self.settings.micro_batch, self.seed, "groups", step)
        layout, sizes = self._layout(indices, groups)
        times = self._times(sizes, random)
        masked = torch.zeros_like(layout.is_target)
        masked[layout.is_target] = data.draw_masks(times, layout.targets, random, self.settings.at_least_one)
        weights = slot_weights(
            masked, layout.owner, times, layout.targets, self.settings.weight, self.settings.normaliser, groups
        )
        corrupted = torch.where(masked, self.mask_id, layout.tokens)
        prefixes = [self.prefix(prompt) for prompt in layout.prompts.tolist()] if self.prefix else []
        return micro_batches(layout, corrupted, masked, weights, sizes, prefixes)

    def _layout(self, indices: torch.Tensor, groups: torch.Tensor) -> tuple[BatchLayout, list[int]]:
        """The padded batch, and the number of sequences of each pass."""
        lengths, padding = self.pairs.lengths[indices], self.settings.eos_padding
        if self.settings.padding_read:
            extra = data.read_padding(lengths, groups)
            sizes = self.passes.sizes(lengths + extra)
            return data.lay_out(self.pairs, indices, extra, predicted=False), sizes
        sizes = self.passes.sizes(lengths, padding)
        return data.lay_out(self.pairs, indices, data.eos_padding(lengths, padding, sizes)), sizes

    def _times(self, sizes: list[int], random: torch.Generator) -> torch.Tensor:
        settings = self.settings
        options = {"eps": settings.eps, "all_mask_share": self.all_mask_share, "antithetic": settings.antithetic}
        if settings.time == "sequence":
            return data.draw_times(sum(sizes), random, **options)
        return data.draw_times(len(sizes), random, **options).repeat_interleave(torch.tensor(sizes))


@dataclass(frozen=True)
class Continuations:
    """The micro-batches of each step, a pure function of (seed, step): next-token prediction of target and EOS.

    The counterpart of :class:`Canvases` for causal families. Both give the same pairs in each step of fine-tuning if
    both tokenizers drop the same pairs as too long. The prompt is not predicted. Of ``training.loss`` only
    ``normaliser`` ("token" and "masked" agree) and ``micro_batch`` apply: nothing is masked, so there is no ``time``,
    ``eps`` or ``weight``; and ``eos_padding`` would teach nothing, since decoding stops at the first EOS.
    """

    pairs: data.Pairs
    order: data.Batches
    normaliser: str
    seed: int
    passes: Passes = ONE_PASS
    micro_batch: int = 4

    def __getitem__(self, step: int) -> list[MicroBatch]:
        indices = self.order[step]
        layout = data.lay_out(self.pairs, indices, torch.zeros_like(indices))
        ones = torch.ones(len(indices))
        groups = data.draw_groups(len(indices), self.micro_batch, self.seed, "groups", step)
        weights = slot_weights(layout.is_target, layout.owner, ones, layout.targets, "none", self.normaliser, groups)
        sizes = self.passes.sizes(self.pairs.lengths[indices])
        return micro_batches(layout, layout.tokens, layout.is_target, weights, sizes)
