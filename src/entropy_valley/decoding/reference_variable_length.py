"""DAEDAL and ρ-EOS in their plainest form, beside :mod:`entropy_valley.decoding.reference`.

One sentence at a time, one token list, a float64 softmax over the whole vocabulary of every slot, revealed or not.
Nothing is shared with the decoders but their settings' default values, here written out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import torch

from entropy_valley.decoding.reference import slot_logits

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
def daedal(backbone: Backbone, prompt: Sequence[int], length: int, window: int, most: int) -> Result:
    """DAEDAL's second stage on ``length`` masks."""
    tokens, lengths = [backbone.mask_id] * length, []
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
    found = []
    for slot, chances in enumerate(slot_logits(backbone, prompt, tokens).softmax(-1)):
        if tokens[slot] == backbone.eos_id:
            found.append(1.0)
        elif tokens[slot] == backbone.mask_id and int(chances.argmax()) == backbone.eos_id:
            found.append(float(chances[backbone.eos_id]))
    return sum(found[-window:]) / window
