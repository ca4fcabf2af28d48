"""The decoding of the authors' public code in its plainest form, beside :mod:`entropy_valley.decoding.reference`.

One sentence at a time, all T steps, loops over slots: K_t by floors, a SIG against a distractor once a sentence, and on
request a mask token that may be revealed. A slot that is revealed as a mask is still masked; what is masked after T
steps is filled by one pass more, and a mask that is then left is no part of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from entropy_valley.decoding.reference import slot_logits

if TYPE_CHECKING:
    from entropy_valley.model.load import Backbone


@torch.inference_mode()
def decode(
    backbone: Backbone,
    prompt: Sequence[int],
    length: int,
    steps: int,
    order: str = "med",
    distractor: Sequence[int] = (),
    p: float = 0.5,
    mask_token: bool = False,
    anchors: Sequence[int] = (),
) -> tuple[list[int], list[int]]:
    """Fill ``length`` masks behind ``prompt`` in ``steps`` steps: (all tokens, those of the text).

    ``p`` is hybrid's, ``anchors`` are oracle_anchor's. With ``mask_token`` it is in all distributions.
    """
    mask, canvas = backbone.mask_id, [backbone.mask_id] * length
    sig = slot_sigs(backbone, prompt, distractor, length, mask_token) if distractor else []
    for step in range(steps):
        masked = [slot for slot in range(length) if canvas[slot] == mask]
        count = length * (step + 1) // steps - length * step // steps
        if masked and count:
            logits = slot_logits(backbone, prompt, canvas, mask_token)
            scores = _scores(order, masked, sig, entropies(logits), step, steps, p)
            ranked = sorted(masked, key=lambda slot: (-scores[slot], slot))
            first = [slot for slot in masked if order == "oracle_anchor" and slot in anchors]  # from left to right
            for slot in (first + [slot for slot in ranked if slot not in first])[:count]:
                canvas[slot] = int(logits[slot].argmax())
    if mask in canvas:
        logits = slot_logits(backbone, prompt, canvas, mask_token)
        canvas = [int(logits[slot].argmax()) if token == mask else token for slot, token in enumerate(canvas)]
    end = canvas.index(backbone.eos_id) if backbone.eos_id in canvas else length
    return canvas, [token for token in canvas[:end] if token != mask]


@torch.inference_mode()
def slot_sigs(
    backbone: Backbone, prompt: Sequence[int], distractor: Sequence[int], length: int, mask_token: bool = False
) -> list[float]:
    """The SIG of each slot of an all-mask canvas (nats)."""
    masks = [backbone.mask_id] * length
    own, other = (entropies(slot_logits(backbone, one, masks, mask_token)) for one in (prompt, distractor))
    return [b - a for a, b in zip(own, other, strict=True)]


def entropies(logits: torch.Tensor) -> list[float]:
    """Of each row's distribution (nats)."""
    return torch.special.entr(logits.softmax(-1)).sum(-1).tolist()


def _scores(
    order: str, masked: Sequence[int], sig: Sequence[float], entropy: Sequence[float], step: int, steps: int, p: float
) -> dict[int, float]:
    """Of each masked slot; the largest is revealed first."""
    if order == "hybrid":
        order = "med" if step < int(p * steps) else "sig_first"
    if order in ("med", "oracle_anchor"):
        return {slot: -entropy[slot] for slot in masked}
    if order in ("sig_first", "reverse_sig"):
        sign = 1 if order == "sig_first" else -1
        return {slot: sign * sig[slot] for slot in masked}
    if order != "entropy_weighted_sig":
        raise ValueError(f"order {order!r}")
    alpha = step / max(steps - 1, 1)
    most, low, high = max(sig[slot] for slot in masked), *(f(entropy[slot] for slot in masked) for f in (min, max))
    scores = {}
    for slot in masked:
        guided = max(sig[slot], 0) / most if most > 0 else 0.0
        unsure = (entropy[slot] - low) / (high - low) if high > low else 0.0
        scores[slot] = alpha * guided + (1 - alpha) * (1 - unsure)
    return scores


@torch.inference_mode()
def finished_score(
    backbone: Backbone, prompt: Sequence[int], text: Sequence[int], length: int, mask_token: bool = False
) -> float:
    """Mean log-probability of a finished text's tokens and its first EOS in a canvas of ``length`` slots, the rest of
    them EOS; what is longer is cut."""
    canvas = list(text)
    while len(canvas) < max(length, len(text) + 1):
        canvas.append(backbone.eos_id)
    canvas = canvas[:length]
    logprobs, total, count = slot_logits(backbone, prompt, canvas, mask_token).log_softmax(-1), 0.0, 0
    for slot, token in enumerate(canvas):
        total, count = total + float(logprobs[slot, token]), count + 1
        if token == backbone.eos_id:
            break
    return total / count
