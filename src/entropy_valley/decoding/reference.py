"""READ THIS PAGE FIRST: the paper's Algorithm 1 in its plainest form, the oracle that the engine is tested against.

:func:`decode` is one sentence at a time, all T passes, the logits of every row; :func:`denoise` shows each step. It
shares with the engine neither attention, packing nor numerics: transformers' stock class runs on the same weights, with
its own eager attention under an explicit 4-D mask of zeros, and the softmax is a float64 one over the float32 logits
(with ``float32_head`` also the LM head's product is in float32), so that the order it finds is the true one and not
rounding's.

Below it are the reveal orders, in the same plain form.
"""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from entropy_valley.decoding.orders import priorities, reveal_counts
from entropy_valley.model.load import Backbone, stock_model


def decode(
    backbone: Backbone, prompt: Sequence[int], length: int, steps: int, **how: Any
) -> tuple[list[int], list[int]]:
    """Fill ``length`` masks behind ``prompt`` in ``steps`` steps: (all tokens, those before the first EOS). ``how`` are
    further arguments of :func:`denoise`."""
    *_, tokens = denoise(backbone, prompt, length, steps, **how)
    end = tokens.index(backbone.eos_id) if backbone.eos_id in tokens else length
    return tokens, tokens[:end]


@torch.inference_mode()
def denoise(
    backbone: Backbone,
    prompt: Sequence[int],
    length: int,
    steps: int,
    schedule: str = "llada",
    rank: Rank | None = None,
    sourceless: Sequence[int] = (),
) -> Iterator[list[int]]:
    """:func:`decode` step by step: the ``length`` tokens of the canvas after each step that reveals any.

    ``rank`` is the reveal order, MED unless given; ``sourceless`` the prompt without the source, if it is looked at.
    """
    rank, tokens, step = rank or Step.entropy, [backbone.mask_id] * length, 0
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
            yield list(tokens)


@torch.inference_mode()
def read(backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int]) -> tuple[list[float], list[int]]:
    """Entropy (nats) and most probable token of every slot, revealed or not, from one whole forward pass."""
    probability = slot_logits(backbone, prompt, tokens).softmax(-1)
    return torch.special.entr(probability).sum(-1).tolist(), probability.argmax(-1).tolist()


def slot_logits(backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int], mask_token: bool = False) -> Tensor:
    """Float64 logits (slots, vocabulary). Those of ids that are no tokens are -inf, and so is the mask token's unless
    that may be revealed."""
    ids, prefix = torch.tensor([[*prompt, *tokens]], device=backbone.device), backbone.prefix(len(prompt))
    count, dtype = ids.shape[1], backbone.model.dtype
    mask = torch.zeros(1, 1, count, count, dtype=dtype, device=backbone.device)
    mask[..., :prefix, prefix:] = torch.finfo(dtype).min  # the rows of the prefix attend to one another alone
    logits = stock_logits(backbone, input_ids=ids, attention_mask=mask, use_cache=False).double()
    if backbone.vocabulary:  # None, as without a tokenizer, would be all of them
        logits[:, backbone.vocabulary :] = float("-inf")
    if not mask_token:
        logits[:, backbone.mask_id] = float("-inf")
    first = len(prompt) - int(backbone.shifted)
    return logits[first : first + len(tokens)]


_STOCK: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # by our model: made once


def stock_logits(backbone: Backbone, **given: Any) -> Tensor:
    """Float32 logits (rows, vocabulary) of the stock forward over what it is ``given``, with eager attention."""
    if backbone.model not in _STOCK:
        _STOCK[backbone.model] = stock_model(backbone.family, backbone.model)
    stock = _STOCK[backbone.model]
    if stock.dtype == torch.float32 or not backbone.float32_head:
        return stock(**given).logits[0].float()
    return copy.deepcopy(stock.lm_head).float()(stock.model(**given).last_hidden_state[0].float())


@dataclass(frozen=True)
class Step:
    """What an order may look at: the prompt, the canvas's logits (slots, vocabulary; float64, the mask token's -inf),
    those without the source, and the step, from 0, of the ``steps`` that reveal anything."""

    prompt: Sequence[int]
    logits: Tensor
    without_source: Callable[[], Tensor]
    step: int
    steps: int

    def entropy(self) -> Tensor:
        return torch.special.entr(self.logits.softmax(-1)).sum(-1)

    def sig(self) -> Tensor:
        """KL of the two distributions as it is defined; 0 log 0 is 0."""
        p, q = self.logits.log_softmax(-1), self.without_source().log_softmax(-1)
        return (p.exp() * (p - q)).nansum(-1)


Rank = Callable[[Step], Tensor]  # one of RANKS, its settings given


def hybrid(step: Step, p: float) -> Tensor:
    """``p`` times the steps must be exact in binary, or no integer."""
    return step.entropy() if step.step < int(p * step.steps) else -step.sig()


def blocks(step: Step, block_length: int = 32, by: str = "entropy") -> Tensor:
    sure = step.entropy() if by == "entropy" else -step.logits.log_softmax(-1).max(-1).values
    return 1000 * (torch.arange(len(step.logits)) // block_length) + sure


def random(step: Step, seed: int = 1) -> Tensor:
    return torch.tensor(priorities(seed, tuple(step.prompt), len(step.logits)))


RANKS: dict[str, Callable[..., Tensor]] = {
    "med": Step.entropy,
    "sig_first": lambda step: -step.sig(),
    "reverse_sig": Step.sig,
    "entropy_weighted_sig": lambda step: -step.sig() / step.entropy().exp(),
    "hybrid": hybrid,
    "left_to_right": lambda step: torch.arange(len(step.logits)),
    "blocks": blocks,
    "random": random,
}
