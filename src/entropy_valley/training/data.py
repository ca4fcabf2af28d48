"""Training data: tokenised pairs, their order, and which slots are masked."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model.prompt import Prompt

# --- Random streams: a step's draws are a pure function of seed and step, without global state.


def seed_of(*key: Any) -> int:
    """A 63-bit seed for torch from a JSON-able key such as ``(seed, "dropout", step)``."""
    return int(files.digest(key)[:16], 16) >> 1


def stream(*key: Any) -> torch.Generator:
    """A random stream for each key, so that a run can resume at any step."""
    return torch.Generator().manual_seed(seed_of(*key))


# --- Tokenised pairs, their order in training, and their layout as one packed row.

LEAST_CUT = 5  # tokens before the EOS of a target that was cut, as in the authors' code
_CHUNK = 4096  # pairs tokenised in one call, which needs far more memory than the ids


@dataclass(frozen=True)
class Pairs:
    """Sequences ``prompt(x) ‖ y`` laid end to end; y ends with one EOS.

    ``tokens`` is (total,), int32; ``starts``, ``prompts`` (tokens of the prompt) and ``lengths`` (of the sequence) are
    (pairs,). ``dropped`` counts the pairs that were too long, ``cut`` those that were and are here with less of y.
    """

    tokens: torch.Tensor
    starts: torch.Tensor
    prompts: torch.Tensor
    lengths: torch.Tensor
    dropped: int
    cut: int = 0

    def __len__(self) -> int:
        return len(self.lengths)


def tokenise(
    rows: Sequence[Mapping[str, Any]], prompt: Prompt, eos_id: int, max_tokens: int, *, cut: bool = False
) -> Pairs:
    """The pairs whose prompt, target and EOS fit into ``max_tokens``; the others are counted, not truncated.

    With ``cut`` their targets are truncated to fit, if at least ``LEAST_CUT`` tokens of them are left.
    Raises InputError if no pair fits.
    """
    chunks = [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]
    pairs = join([_tokenise(chunk, prompt, eos_id, max_tokens, cut) for chunk in chunks])
    if not len(pairs):
        raise InputError(
            "max_tokens", f"no pair has at most {max_tokens} tokens", "Raise max_tokens or give shorter pairs."
        )
    return pairs


def _tokenise(rows: Sequence[Mapping[str, Any]], prompt: Prompt, eos_id: int, max_tokens: int, cut: bool) -> Pairs:
    sources = prompt.encode_all([row["source"] for row in rows])
    targets = prompt.tokens_of_all([row["target"] for row in rows])
    pairs = [(source, [*target, eos_id]) for source, target in zip(sources, targets, strict=True)]
    fitting = sum(len(source) + len(target) <= max_tokens for source, target in pairs)
    if cut:
        pairs = [(source, _shortened(target, max_tokens - len(source))) for source, target in pairs]
    kept = [(source, target) for source, target in pairs if len(source) + len(target) <= max_tokens]
    prompts = torch.tensor([len(source) for source, _ in kept], dtype=torch.long)
    lengths = prompts + torch.tensor([len(target) for _, target in kept], dtype=torch.long)
    tokens = torch.tensor([token for pair in kept for part in pair for token in part], dtype=torch.int32)
    return Pairs(tokens, lengths.cumsum(0) - lengths, prompts, lengths, len(rows) - len(kept), len(kept) - fitting)


def _shortened(target: list[int], room: int) -> list[int]:
    """The target with its EOS, at most ``room`` tokens of it; unchanged where too little would be left."""
    return target if len(target) <= room or room <= LEAST_CUT else [*target[: room - 1], target[-1]]


def join(parts: Sequence[Pairs]) -> Pairs:
    """Several corpora as one."""
    lengths = torch.cat([part.lengths for part in parts])
    return Pairs(
        torch.cat([part.tokens for part in parts]),
        lengths.cumsum(0) - lengths,
        torch.cat([part.prompts for part in parts]),
        lengths,
        sum(part.dropped for part in parts),
        sum(part.cut for part in parts),
    )


class Batches:
    """The batch of each step: a pure function of (seed, step), with each pair once per epoch.

    Sequences of a batch are sorted by length, so micro-batches hold similar lengths. With ``alike`` a whole batch holds
    similar lengths: the epoch is sorted, cut into batches, and the batches are shuffled. One batch of an epoch may be
    smaller.
    """

    def __init__(self, lengths: torch.Tensor, batch: int, seed: int, alike: bool = False) -> None:
        self._lengths, self._batch, self._seed, self._alike = lengths, batch, seed, alike
        self._epoch = functools.lru_cache(maxsize=1)(self._shuffled)

    def __len__(self) -> int:
        """Batches per epoch."""
        return -(-len(self._lengths) // self._batch)

    def __getitem__(self, step: int) -> torch.Tensor:
        """The indices of a step's pairs, shortest first; steps count from 0 through all epochs."""
        epoch, number = divmod(step, len(self))
        return self._epoch(epoch)[number]

    def _shuffled(self, epoch: int) -> list[torch.Tensor]:
        random = stream(self._seed, "order", epoch)
        order = torch.randperm(len(self._lengths), generator=random)
        batches = [self._sorted(batch) for batch in (self._sorted(order) if self._alike else order).split(self._batch)]
        return [batches[number] for number in torch.randperm(len(batches), generator=random).tolist()]

    def _sorted(self, indices: torch.Tensor) -> torch.Tensor:
        return indices[self._lengths[indices].argsort(stable=True)]


def eos_padding(lengths: torch.Tensor, padding: int | str, sizes: list[int]) -> torch.Tensor:
    """The number of extra EOS targets of each sequence: ``padding`` (the paper's is 0), or with "batch" as many as
    reach the longest sequence of the micro-batch (LLaDA's recipe). ``sizes``: sequences of each micro-batch."""
    if padding != "batch":
        return torch.full_like(lengths, int(padding))
    return torch.cat([part.max() - part if len(part) else part for part in lengths.split(sizes)])


def draw_groups(count: int, size: int, *key: Any) -> torch.Tensor:
    """The number of the group of each of ``count`` sequences, (count,): groups of ``size`` (the last: the rest)."""
    return torch.randperm(count, generator=stream(*key)) // size


def read_padding(lengths: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """The number of tokens by which each sequence is shorter than the longest of its group, (batch,)."""
    longest = torch.zeros(int(groups.max()) + 1, dtype=lengths.dtype).scatter_reduce(0, groups, lengths, "amax")
    return longest[groups] - lengths


def longest_pair(limit: int, padding: int | str) -> int:
    """The most tokens of a pair that stays within ``limit`` with its :func:`eos_padding`."""
    return limit if padding == "batch" else limit - int(padding)


@dataclass(frozen=True)
class BatchLayout:
    """A batch of pairs as one row of tokens. ``prompts`` (tokens of the prompt), ``lengths`` and ``targets`` (|y|) are
    (batch,), the others (rows,)."""

    tokens: torch.Tensor
    positions: torch.Tensor
    owner: torch.Tensor
    is_target: torch.Tensor
    prompts: torch.Tensor
    lengths: torch.Tensor
    targets: torch.Tensor


def lay_out(pairs: Pairs, indices: torch.Tensor, extra: torch.Tensor, predicted: bool = True) -> BatchLayout:
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
) -> torch.Tensor:
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


def draw_masks(
    times: torch.Tensor, targets: torch.Tensor, random: torch.Generator, at_least_one: bool = True
) -> torch.Tensor:
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
