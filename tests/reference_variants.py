"""Decoders that are compared with the engine's, in the plain form of :mod:`entropy_valley.decoding.reference`.

DAEDAL and ρ-EOS; and prompts that are computed in some passes only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import torch
from transformers import DynamicCache

from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.decoding.reference import Rank, Step, read, slot_logits, stock_logits

if TYPE_CHECKING:
    from entropy_valley.model.load import Backbone

Result = tuple[list[int], list[int]]  # the tokens, and the canvas's length in each pass


@torch.inference_mode()
def daedal_lengths(backbone: Backbone, prompt: Sequence[int], start: int, window: int, most: int) -> list[int]:
    """The lengths that DAEDAL's first stage looks at; it takes the last."""
    lengths = [min(start, most)]
    while lengths[-1] < most and _eos_confidence(backbone, prompt, [backbone.mask_id] * lengths[-1], window) < 0.5:
        lengths.append(min(lengths[-1] + 8, most))
    return lengths


@torch.inference_mode()
def daedal(backbone: Backbone, prompt: Sequence[int], length: int, window: int, most: int, appended: int = 0) -> Result:
    """DAEDAL's second stage on ``length`` masks, with so many EOS behind them."""
    tokens, lengths = [backbone.mask_id] * length, []
    for _ in range(appended):
        if len(tokens) < most:
            tokens.append(backbone.eos_id)
    while backbone.mask_id in tokens:
        lengths.append(len(tokens))
        confidence = _eos_confidence(backbone, prompt, tokens, window)
        best, chosen, block = _choose(backbone, prompt, tokens)
        rest = [slot for slot in block if slot not in chosen and best[slot][0] < 0.1]
        for slot in chosen:
            tokens[slot] = best[slot][1]
        if confidence < 0.9 and rest:
            weakest = min(rest, key=lambda slot: best[slot][0])
            for _ in range(7):
                if len(tokens) < most:
                    tokens.insert(weakest, backbone.mask_id)
    return tokens, lengths


@torch.inference_mode()
def rho_eos(backbone: Backbone, prompt: Sequence[int], length: int, most: int) -> Result:
    """ρ-EOS from ``length`` masks on."""
    mask, tokens, lengths = backbone.mask_id, [backbone.mask_id] * length, []
    while mask in tokens:
        lengths.append(len(tokens))
        best, chosen, _ = _choose(backbone, prompt, tokens)
        masked = [slot for slot, token in enumerate(tokens) if token == mask]
        density = Fraction(sum(best[slot][1] == backbone.eos_id for slot in masked), len(masked))
        for slot in chosen:
            tokens[slot] = best[slot][1]
        if len(lengths) <= 64 and density < Fraction(2, 5):
            place = tokens.index(backbone.eos_id) if backbone.eos_id in tokens else len(tokens)
            for _ in range(_change(Fraction(2, 5) - density)):
                if len(tokens) < most:
                    tokens.insert(place, mask)
        if len(lengths) <= 64 and density > Fraction(3, 5):
            for _ in range(_change(density - Fraction(3, 5))):
                if tokens[-1] == mask and len(tokens) > 2:
                    tokens.pop()
    return tokens, lengths


@torch.inference_mode()
def confidence_threshold(
    backbone: Backbone, prompt: Sequence[int], length: int, threshold: float, block: int
) -> Result:
    """In the first block with a mask, each pass reveals what is above the threshold, or else the surest slot."""
    tokens, lengths = [backbone.mask_id] * length, []
    while backbone.mask_id in tokens:
        lengths.append(length)
        chances, ids = slot_logits(backbone, prompt, tokens).softmax(-1).max(-1)
        masked = [slot for slot in range(length) if tokens[slot] == backbone.mask_id]
        masked = [slot for slot in masked if slot // block == masked[0] // block]
        best = max(masked, key=lambda slot: float(chances[slot]))
        for slot in masked:
            if chances[slot] > threshold or (slot == best and chances[best] <= threshold):
                tokens[slot] = int(ids[slot])
    return tokens, lengths


@torch.inference_mode()
def generate(backbone: Backbone, prompt: Sequence[int], length: int, block: int, steps: int) -> list[int]:
    """LLaDA's ``generate``, whose blocks and steps divide ``length`` and T: the same count at each step of a block."""
    tokens = [backbone.mask_id] * length
    steps_of_block = steps // (length // block)
    for first in range(0, length, block):
        for step in range(steps_of_block):
            chances, ids = slot_logits(backbone, prompt, tokens).softmax(-1).max(-1)
            masked = [slot for slot in range(first, first + block) if tokens[slot] == backbone.mask_id]
            count = block // steps_of_block + (step < block % steps_of_block)
            for slot in sorted(masked, key=lambda slot: (-float(chances[slot]), slot))[:count]:
                tokens[slot] = int(ids[slot])
    return tokens


@torch.inference_mode()
def semi_autoregressive(backbone: Backbone, prompt: Sequence[int], length: int, block: int, count: int) -> Result:
    """LLaDA's ``generate``: ``count`` of a block's surest guesses a pass; it ends behind a block with an EOS."""
    tokens, lengths = [backbone.mask_id] * length, []
    for first in range(0, length, block):
        slots = range(first, min(first + block, length))
        while any(tokens[slot] == backbone.mask_id for slot in slots):
            lengths.append(length)
            chances, ids = slot_logits(backbone, prompt, tokens).softmax(-1).max(-1)
            masked = [slot for slot in slots if tokens[slot] == backbone.mask_id]
            for slot in sorted(masked, key=lambda slot: -float(chances[slot]))[:count]:
                tokens[slot] = int(ids[slot])
        if backbone.eos_id in tokens[first : first + block]:
            return tokens[: first + block], lengths
    return tokens, lengths


def _change(gap: Fraction) -> int:
    return 8 * min(8, 2 ** (math.ceil(10 * gap) - 1))


def _choose(backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int]):
    """(probability, token) of each slot, the slots to be revealed, and the masked ones of their block of 32."""
    chances, ids = slot_logits(backbone, prompt, tokens).softmax(-1).max(-1)
    best = list(zip(chances.tolist(), ids.tolist(), strict=True))
    first = 32 * (tokens.index(backbone.mask_id) // 32)
    block = [slot for slot in range(first, min(first + 32, len(tokens))) if tokens[slot] == backbone.mask_id]
    sure = [slot for slot in block if best[slot][0] > 0.9]
    return best, sure or [max(block, key=lambda slot: best[slot][0])], block


def _eos_confidence(backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int], window: int) -> float:
    """Mean p(EOS) over the last ``window`` slots that expect it; a revealed EOS has 1, another revealed token 0."""
    confidences = []
    for slot, chances in enumerate(slot_logits(backbone, prompt, tokens).softmax(-1)):
        if tokens[slot] == backbone.eos_id:
            confidences.append(1.0)
        elif tokens[slot] == backbone.mask_id and int(chances.argmax()) == backbone.eos_id:
            confidences.append(float(chances[backbone.eos_id]))
    return sum(confidences[-window:]) / window


@torch.inference_mode()
def decode_cached(
    backbone: Backbone,
    prompt: Sequence[int],
    length: int,
    steps: int,
    refresh: int,
    schedule: str = "llada",
    rank: Rank | None = None,
    sourceless: Sequence[int] = (),
) -> tuple[list[int], list[int]]:
    """As :func:`.reference.decode`, but of the steps that reveal anything only each ``refresh``-th, from the first on,
    runs the prompt. The prompt without the source is run again in the same steps, if the order looks at it there."""
    rank, tokens = rank or Step.entropy, [backbone.mask_id] * length
    kept, other = CachedPrompt(backbone, prompt), CachedPrompt(backbone, sourceless)
    counts = [count for count in reveal_counts(length, steps, schedule) if count]
    for step, count in enumerate(counts):
        logits = kept.logits(tokens, step % refresh == 0)
        without_source = functools.partial(other.logits, tokens, step % refresh == 0)
        scores = rank(Step(prompt, logits, without_source, step, len(counts))).tolist()
        masked = [slot for slot in range(length) if tokens[slot] == backbone.mask_id]
        for slot in sorted(masked, key=lambda slot: (scores[slot], slot))[:count]:
            tokens[slot] = int(logits[slot].argmax())
    end = tokens.index(backbone.eos_id) if backbone.eos_id in tokens else length
    return tokens, tokens[:end]


@torch.inference_mode()
def read_cached(backbone: Backbone, prompt: Sequence[int], length: int, beside: int) -> tuple[list[float], list[int]]:
    """Entropy (nats) and most probable token of every slot of ``length`` masks, the prompt's keys and values being
    those that it has before ``beside`` masks."""
    kept = CachedPrompt(backbone, prompt)
    kept.whole([backbone.mask_id] * beside)
    probability = kept.slots([backbone.mask_id] * length).softmax(-1)
    return torch.special.entr(probability).sum(-1).tolist(), probability.argmax(-1).tolist()


def mean_entropy(backbone: Backbone, prompt: Sequence[int], length: int, beside: int | None = None) -> float:
    """EV's score of a canvas (nats): the exact one, or with the prompt of ``beside`` masks."""
    if beside is None:
        entropies, _ = read(backbone, prompt, [backbone.mask_id] * length)
    else:
        entropies, _ = read_cached(backbone, prompt, length, beside)
    return sum(entropies[:-1]) / (length - 1)


class CachedPrompt:
    """A prompt, and its keys and values of the last whole pass, in a cache of transformers.

    Both passes give float64 logits (slots, vocabulary), the mask token's -inf.
    """

    def __init__(self, backbone: Backbone, prompt: Sequence[int]) -> None:
        self._backbone, self._prompt = backbone, list(prompt)
        self._rows, self._cache = len(prompt) - int(backbone.shifted), DynamicCache()

    def logits(self, tokens: Sequence[int], renew: bool) -> torch.Tensor:
        """The exact pass if the prompt is to be renewed, or was never run; else that over the slots."""
        return self.whole(tokens) if renew or not self._cache.get_seq_length() else self.slots(tokens)

    def whole(self, tokens: Sequence[int]) -> torch.Tensor:
        """The exact pass."""
        self._cache = DynamicCache()
        return self._logits([*self._prompt, *tokens], 0)[self._rows :][: len(tokens)]

    def slots(self, tokens: Sequence[int]) -> torch.Tensor:
        """The pass over the slots."""
        return self._logits([*self._prompt[self._rows :], *tokens], self._rows)[: len(tokens)]

    def _logits(self, tokens: Sequence[int], first: int) -> torch.Tensor:
        """Of tokens at the positions from ``first`` on, which attend to the cache and to one another."""
        count, device = len(tokens), self._backbone.device
        logits = stock_logits(
            self._backbone,
            input_ids=torch.tensor([tokens], device=device),
            position_ids=torch.arange(first, first + count, device=device)[None],
            attention_mask=torch.zeros(1, 1, count, first + count, dtype=self._backbone.model.dtype, device=device),
            past_key_values=self._cache,
            use_cache=True,
        ).double()
        self._cache.crop(self._rows)
        logits[:, self._backbone.mask_id] = float("-inf")
        return logits
