"""From sentence pairs to the loss: tokenised pairs, their order, masked canvases, weighted cross-entropy."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model.attention import Packed, Rows
from entropy_valley.model.decoder import Decoder
from entropy_valley.training.settings import EosPadding, Loss

# --- Random streams: a step's draws are a pure function of seed and step, without global state.


def seed_of(*key: Any) -> int:
    """A 63-bit seed for torch from a JSON-able key such as ``(seed, "dropout", step)``."""
    return int(files.digest(key)[:16], 16) >> 1


def stream(*key: Any) -> torch.Generator:
    """A random stream for each key, so that a run can resume at any step."""
    return torch.Generator().manual_seed(seed_of(*key))


# --- Tokenised pairs, their order in training, and their layout as one packed row.

LEAST_CUT = 5  # tokens before the EOS of a target that was cut, as in the authors' code


@dataclass(frozen=True)
class Pairs:
    """Sequences ``prompt(x) ‖ y`` laid end to end; y ends with one EOS.

    ``tokens`` is (total,), int32; ``starts``, ``prompts`` (tokens of the prompt) and ``lengths`` (of the sequence) are
    (pairs,). ``dropped`` counts the pairs that were too long, ``cut`` those that were and are here with less of y.
    """

    tokens: Tensor
    starts: Tensor
    prompts: Tensor
    lengths: Tensor
    dropped: int
    cut: int = 0

    def __len__(self) -> int:
        return len(self.lengths)


def fitting_pairs(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]], eos_id: int, max_tokens: int, *, cut: bool = False
) -> Pairs:
    """The pairs of token ids whose prompt, target and EOS fit into ``max_tokens``; the others are counted.

    With ``cut`` their targets are truncated to fit, if at least ``LEAST_CUT`` tokens of them are left.
    Raises InputError if no pair fits.
    """
    tokens = array("i")  # a list would take eight times the memory
    prompts, ends = [], [0]
    dropped = shortened = 0
    for prompt, target in pairs:
        room = max_tokens - len(prompt) - 1  # for the target without its EOS
        if cut and len(target) > room >= LEAST_CUT:
            target = target[:room]
            shortened += 1
        if len(target) <= room:
            tokens.extend([*prompt, *target, eos_id])
            prompts.append(len(prompt))
            ends.append(len(tokens))
        else:
            dropped += 1
    if not prompts:
        remedy = "Raise max_tokens or give shorter pairs."
        raise InputError("max_tokens", f"no pair has at most {max_tokens} tokens", remedy)
    starts, flat = torch.tensor(ends), torch.frombuffer(tokens, dtype=torch.int32)
    return Pairs(flat, starts[:-1], torch.tensor(prompts), starts.diff(), dropped, shortened)


class Batches:
    """The batch of each step: a pure function of (seed, step), with each pair once per epoch.

    Sequences of a batch are sorted by length, so micro-batches hold similar lengths. With ``alike`` a whole batch holds
    similar lengths: the epoch is sorted, cut into batches, and the batches are shuffled. One batch of an epoch may be
    smaller.
    """

    def __init__(self, lengths: Tensor, batch: int, seed: int, alike: bool = False) -> None:
        self._lengths, self._batch, self._seed, self._alike = lengths, batch, seed, alike
        self._epoch = functools.lru_cache(maxsize=1)(self._shuffled)

    def __len__(self) -> int:
        """Batches per epoch."""
        return -(-len(self._lengths) // self._batch)

    def __getitem__(self, step: int) -> Tensor:
        """The indices of a step's pairs, shortest first; steps count from 0 through all epochs."""
        epoch, number = divmod(step, len(self))
        return self._epoch(epoch)[number]

    def _shuffled(self, epoch: int) -> list[Tensor]:
        random = stream(self._seed, "order", epoch)
        order = torch.randperm(len(self._lengths), generator=random)
        batches = [self._sorted(batch) for batch in (self._sorted(order) if self._alike else order).split(self._batch)]
        return [batches[number] for number in torch.randperm(len(batches), generator=random).tolist()]

    def _sorted(self, indices: Tensor) -> Tensor:
        return indices[self._lengths[indices].argsort(stable=True)]


def draw_groups(count: int, size: int, *key: Any) -> Tensor:
    """The number of the group of each of ``count`` sequences, (count,): groups of ``size`` (the last: the rest)."""
    return torch.randperm(count, generator=stream(*key)) // size


def longest_pair(limit: int, padding: EosPadding) -> int:
    """The most tokens of a pair that stays within ``limit`` with its ``padding``."""
    return limit if padding == "batch" else limit - padding


@dataclass(frozen=True)
class BatchLayout:
    """A batch of pairs as one row of tokens. ``prompts`` (tokens of the prompt), ``lengths`` and ``targets`` (|y|) are
    (batch,), the others (rows,)."""

    tokens: Tensor
    positions: Tensor
    owner: Tensor
    is_target: Tensor
    prompts: Tensor
    lengths: Tensor
    targets: Tensor


def lay_out(pairs: Pairs, indices: Tensor, extra: Tensor, predicted: bool = True) -> BatchLayout:
    """Gather the pairs at ``indices`` into one row, each with ``extra`` more copies of its EOS at the end.

    These are targets too, unless ``predicted`` is false: then they are only there to be read.
    """
    lengths = pairs.lengths[indices] + extra
    owner = torch.repeat_interleave(torch.arange(len(indices)), lengths)
    positions = torch.arange(len(owner)) - (lengths.cumsum(0) - lengths)[owner]
    within = torch.minimum(positions, (pairs.lengths[indices] - 1)[owner])
    prompts = pairs.prompts[indices]
    ends = lengths if predicted else pairs.lengths[indices]
    return BatchLayout(
        pairs.tokens[pairs.starts[indices][owner] + within].long(),
        positions,
        owner,
        (positions >= prompts[owner]) & (positions < ends[owner]),
        prompts,
        lengths,
        ends - prompts,
    )


# --- Which slots of a training canvas are masked.


def draw_times(
    count: int, random: torch.Generator, *, eps: float, all_mask_share: float = 0.0, antithetic: bool = True
) -> Tensor:
    """Masking rates t ~ U(eps, 1), (count,), stratified: one in each of ``count`` equal strata, in random order.

    All draws have the same offset in their strata. Without ``antithetic`` all are independent. A share
    ``all_mask_share`` becomes t = 1, an all-mask canvas: for the demo's pre-training only, not for fine-tuning.
    """
    if antithetic:
        uniform = (torch.randperm(count, generator=random) + torch.rand(1, generator=random)) / count
    else:
        uniform = torch.rand(count, generator=random)
    whole = torch.rand(count, generator=random) < all_mask_share
    return (eps + (1 - eps) * uniform).masked_fill(whole, 1.0)


def draw_masks(times: Tensor, targets: Tensor, random: torch.Generator, at_least_one: bool = True) -> Tensor:
    """m ~ Bernoulli(t) for every target slot, ``at_least_one`` in each sequence; bool, (sum of ``targets``,).

    ``targets`` holds |y| of each sequence, with its EOS. The slot with the smallest draw is always masked: if no draw
    is below t, this is one slot drawn uniformly.
    """
    owner = torch.repeat_interleave(torch.arange(len(targets)), targets)
    draws = torch.rand(len(owner), generator=random)
    if not at_least_one:
        return draws < times[owner]
    smallest = torch.ones(len(targets)).scatter_reduce(0, owner, draws, "amin")
    return draws <= torch.maximum(times, smallest)[owner]


# --- Cutting a step's batch into micro-batches: by tokens, and evenly over the processes.


@dataclass(frozen=True)
class Passes:
    """Passes of at most ``tokens`` tokens, distributed over ``ranks``."""

    tokens: int = sys.maxsize
    ranks: int = 1

    def sizes(self, lengths: Tensor) -> list[int]:
        """The number of sequences of each micro-batch (0 allowed), for a batch with these ``lengths``.

        Each rank runs the same, smallest possible number of micro-batches. Their largest is then made as small as
        possible, so that no rank waits long. A sequence of more than ``tokens`` runs alone.
        """
        costs = lengths.tolist()
        limit = min(self.tokens, len(costs) * max(costs))
        count = -(-len(_filled(costs, limit)) // self.ranks) * self.ranks
        even = bisect.bisect_left(range(limit), True, key=lambda tokens: len(_filled(costs, tokens)) <= count)
        sizes = _filled(costs, even)
        return sizes + [0] * (count - len(sizes))


ONE_PASS = Passes()


def _filled(costs: list[int], limit: int) -> list[int]:
    """Sizes of consecutive parts of at most ``limit``."""
    sizes, total = [0], 0
    for cost in costs:
        total += cost
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
    rows: Tensor
    labels: Tensor
    weights: Tensor

    def __len__(self) -> int:
        """The number of sequences; 0 if a small last batch has none for this pass."""
        return len(self.packed.lengths)

    def to(self, device: torch.device | str) -> MicroBatch:
        ids, positions = self.packed.input_ids.to(device), self.packed.position_ids.to(device)
        packed = dataclasses.replace(self.packed, input_ids=ids, position_ids=positions)
        return MicroBatch(packed, self.rows.to(device), self.labels.to(device), self.weights.to(device))


def slot_weights(layout: BatchLayout, masked: Tensor, times: Tensor, groups: Tensor, settings: Loss) -> Tensor:
    """The factor of each slot's CE in the batch's loss, (rows,); 0 for slots that are not ``masked``, (rows,).

    ``settings.weight``: "1/t" as in the likelihood bound, "none" for plain CE. ``settings.normaliser``: "token" divides
    by sum |y| (LLaDA's loss up to a constant), "sequence" by |y| of the sequence and by the batch size, "masked" by the
    number of masked slots, "micro_batch" by that of the sequence's group (``groups``: its number, (batch,)) and by the
    number of groups.
    """
    owner, targets = layout.owner, layout.targets
    factor = torch.reciprocal(times) if settings.weight == "1/t" else torch.ones_like(times)
    if settings.normaliser == "micro_batch":
        counts = torch.bincount(groups[owner[masked]], minlength=int(groups.max()) + 1)
        divisor = (counts.clamp(min=1) * len(counts))[groups]  # the mean of a group without masks is 0
    else:
        divisor = {
            "token": targets.sum().expand(len(targets)),
            "sequence": targets * len(targets),
            "masked": masked.sum().clamp(min=1).expand(len(targets)),
        }[settings.normaliser]
    return (factor / divisor)[owner] * masked


def cross_entropies(model: Decoder, batch: MicroBatch, shifted: bool) -> Tensor:
    """CE in nats of each predicted token, (predicted tokens,), float32; last layer and LM head compute only their rows.

    Shifted and causal families predict token i from row i - 1. A prompt is never empty, so that row belongs to the same
    sequence.
    """
    logits = model.lm_head(model.hidden_states(batch.packed, Rows(batch.rows - int(shifted))))
    return cross_entropy(logits.float(), batch.labels, reduction="none")


# --- From tokenised pairs to micro-batches, step by step: masked canvases, or continuations for causal families.


@dataclass(frozen=True)
class Canvases:
    """The micro-batches of each step: a pure function of (seed, step).

    Masks, and the groups that share a rate or a padding, are drawn for the whole batch before it is cut into
    micro-batches: the cut changes only the order of floating-point sums. ``prefix`` says how many rows of a prompt of
    so many tokens attend to one another alone; None: all rows attend to everything.

    Without ``mask_id``, for a causal family, all of target and EOS are predicted, and nothing is masked: there is no
    ``time``, ``eps`` or ``weight``. Two backbones get the same pairs in each step if both tokenizers drop the same ones
    as too long.
    """

    pairs: Pairs
    order: Batches
    settings: Loss
    mask_id: int | None
    seed: int
    passes: Passes = ONE_PASS
    all_mask_share: float = 0.0
    prefix: Callable[[int], int] | None = None

    def __getitem__(self, step: int) -> list[MicroBatch]:
        indices, random = self.order[step], stream(self.seed, "canvas", step)
        groups = draw_groups(len(indices), self.settings.micro_batch, self.seed, "groups", step)
        layout, sizes = self._layout(indices, groups)
        times, predicted, inputs = torch.ones(len(indices)), layout.is_target, layout.tokens
        if self.mask_id is not None:
            times, predicted = self._times(groups, random), torch.zeros_like(layout.is_target)
            predicted[layout.is_target] = draw_masks(times, layout.targets, random, self.settings.at_least_one)
            inputs = torch.where(predicted, self.mask_id, layout.tokens)
        weights = slot_weights(layout, predicted, times, groups, self.settings)
        lengths, prompts = layout.lengths.tolist(), layout.prompts.tolist()
        batches, first, start = [], 0, 0
        for size in sizes:
            mine = slice(first, first + size)
            cut = slice(start, start + sum(lengths[mine]))
            prefixes = tuple(map(self.prefix, prompts[mine])) if self.prefix else ()
            packed = Packed(inputs[None, cut], layout.positions[None, cut], tuple(lengths[mine]), prefixes)
            rows = predicted[cut].nonzero()[:, 0]
            batches.append(MicroBatch(packed, rows, layout.tokens[cut][rows], weights[cut][rows]))
            first, start = mine.stop, cut.stop
        return batches

    def _layout(self, indices: Tensor, groups: Tensor) -> tuple[BatchLayout, list[int]]:
        """The padded batch, and the number of sequences of each pass."""
        settings, lengths = self.settings, self.pairs.lengths[indices]
        if settings.padding_read or settings.eos_padding == "batch":
            # By as many tokens each sequence is shorter than the longest of its group.
            longest = torch.zeros(int(groups.max()) + 1, dtype=lengths.dtype).scatter_reduce(0, groups, lengths, "amax")
            extra = longest[groups] - lengths
        else:
            extra = torch.full_like(lengths, settings.eos_padding)
        layout = lay_out(self.pairs, indices, extra, predicted=not settings.padding_read)
        return layout, self.passes.sizes(lengths + extra)

    def _times(self, groups: Tensor, random: torch.Generator) -> Tensor:
        settings, whole = self.settings, self.all_mask_share
        alike = torch.arange(len(groups)) if settings.time == "sequence" else groups  # what has one rate
        count = int(alike.max()) + 1
        times = draw_times(count, random, eps=settings.eps, all_mask_share=whole, antithetic=settings.antithetic)
        return times[alike]
