"""READ THIS PAGE FIRST: the paper's Algorithm 1 in its plainest form, the oracle that the engine is tested against.

:func:`decode` is one sentence at a time, all T passes, the logits of every row. It shares with the engine neither
attention, packing nor numerics: the stock forward runs with transformers' own eager attention under an explicit 4-D
mask of zeros, and the softmax is a float64 one over the float32 logits (with ``float32_head`` also the LM head's
product is in float32), so that the order it finds is the true one and not rounding's.

Below it, in the same plain form: the reveal orders; DAEDAL and ρ-EOS; and prompts that are computed in some passes
only. The authors' own decoding is :mod:`.reference_authors`.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache
from transformers.models.llama.modeling_llama import eager_attention_forward

from entropy_valley.decoding.orders import priorities, reveal_counts
from entropy_valley.model.attention import register_attention, using_attention

if TYPE_CHECKING:
    from entropy_valley.model.load import Backbone


EAGER = "eager_in_dtype_of_v"  # plain "eager" takes no float32 q and k beside a bfloat16 v

register_attention(EAGER, eager_attention_forward)


@torch.inference_mode()
def decode(
    backbone: Backbone,
    prompt: Sequence[int],
    length: int,
    steps: int,
    schedule: str = "llada",
    rank: Rank | None = None,
    sourceless: Sequence[int] = (),
) -> tuple[list[int], list[int]]:
    """Fill ``length`` masks behind ``prompt`` in ``steps`` steps: (all tokens, those before the first EOS).

    ``rank`` is the reveal order, MED unless given; ``sourceless`` the prompt without the source, if it is looked at.
    """
    rank, tokens, step = rank or med(), [backbone.mask_id] * length, 0
    counts = reveal_counts(length, steps, schedule)
    for count in counts:
        logits = slot_logits(backbone, prompt, tokens)
        without_source = functools.partial(slot_logits, backbone, sourceless, tokens)
        if count:
            scores = rank(Step(prompt, logits, without_source, step, sum(map(bool, counts)))).tolist()
            masked = [slot for slot in range(length) if tokens[slot] == backbone.mask_id]
            for slot in sorted(masked, key=lambda slot: (scores[slot], slot))[:count]:
                tokens[slot] = int(logits[slot].argmax())
            step += 1
    end = tokens.index(backbone.eos_id) if backbone.eos_id in tokens else length
    return tokens, tokens[:end]


@torch.inference_mode()
def read(backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int]) -> tuple[list[float], list[int]]:
    """Entropy (nats) and most probable token of every slot, revealed or not, from one whole forward pass."""
    probability = slot_logits(backbone, prompt, tokens).softmax(-1)
    return torch.special.entr(probability).sum(-1).tolist(), probability.argmax(-1).tolist()


def slot_logits(
    backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int], mask_token: bool = False
) -> torch.Tensor:
    """Float64 logits (slots, vocabulary), the mask token's -inf unless that may be revealed."""
    logits = _logits(backbone, [*prompt, *tokens], backbone.prefix(len(prompt))).double()
    if not mask_token:
        logits[:, backbone.mask_id] = float("-inf")
    first = len(prompt) - int(backbone.shifted)
    return logits[first : first + len(tokens)]


def _logits(backbone: Backbone, tokens: Sequence[int], prefix: int) -> torch.Tensor:
    """As :func:`stock_logits`: every token attends to every other, but those of the prefix to one another alone."""
    count, model = len(tokens), backbone.model
    mask = torch.zeros(1, 1, count, count, dtype=model.dtype, device=backbone.device)
    mask[..., :prefix, prefix:] = torch.finfo(model.dtype).min
    ids = torch.tensor([tokens], device=backbone.device)
    return stock_logits(backbone, input_ids=ids, attention_mask=mask, use_cache=False)


def stock_logits(backbone: Backbone, **given: Any) -> torch.Tensor:
    """Float32 logits (rows, vocabulary) of the stock forward over what it is ``given``, with eager attention."""
    model = backbone.model
    with using_attention(model, EAGER):
        if model.dtype == torch.float32 or not backbone.float32_head:
            return model(**given).logits[0].float()
        states = model.model(**given).last_hidden_state[0]
    return copy.deepcopy(model.lm_head).float()(states.float())


@dataclass(frozen=True)
class Step:
    """What an order may look at: the prompt, the canvas's logits (slots, vocabulary; float64, the mask token's -inf),
    those without the source, and the step, from 0, of the ``steps`` that reveal anything."""

    prompt: Sequence[int]
    logits: torch.Tensor
    without_source: Callable[[], torch.Tensor]
    step: int
    steps: int

    def entropy(self) -> torch.Tensor:
        return torch.special.entr(self.logits.softmax(-1)).sum(-1)

    def sig(self, backward: bool) -> torch.Tensor:
        """KL of the two distributions as it is defined; 0 log 0 is 0."""
        p, q = self.logits.log_softmax(-1), self.without_source().log_softmax(-1)
        p, q = (q, p) if backward else (p, q)
        return (p.exp() * (p - q)).nansum(-1)


Rank = Callable[[Step], torch.Tensor]


def med() -> Rank:
    return Step.entropy


def sig_first(backward: bool = False) -> Rank:
    return lambda step: -step.sig(backward)


def reverse_sig(backward: bool = False) -> Rank:
    return lambda step: step.sig(backward)


def entropy_weighted_sig(backward: bool = False) -> Rank:
    return lambda step: -step.sig(backward) / step.entropy().exp()


def hybrid(p: float, backward: bool = False) -> Rank:
    """``p`` times the steps must be exact in binary, or no integer."""
    return lambda step: step.entropy() if step.step < int(p * step.steps) else -step.sig(backward)


def left_to_right() -> Rank:
    return lambda step: torch.arange(len(step.logits))


def random(seed: int = 1) -> Rank:
    return lambda step: torch.tensor(priorities(seed, step.prompt, len(step.logits)))


RANKS: dict[str, Callable[..., Rank]] = {
    "med": med,
    "sig_first": sig_first,
    "reverse_sig": reverse_sig,
    "hybrid": hybrid,
    "entropy_weighted_sig": entropy_weighted_sig,
    "left_to_right": left_to_right,
    "random": random,
}

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
    """As :func:`decode`, but of the steps that reveal anything only each ``refresh``-th, from the first on,
    runs the prompt. The prompt without the source is run again in the same steps, if the order looks at it there."""
    rank, tokens = rank or med(), [backbone.mask_id] * length
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
