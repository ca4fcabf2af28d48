"""A prompt whose keys and values are renewed in some passes only, in its plainest form, beside :mod:`.reference`.

One sentence at a time, with transformers' own cache and eager attention under explicit masks of zeros. A whole pass
runs the rows of prompt and canvas; of what it leaves in the cache the rows of the prompt are kept. In other passes the
slots attend to these and to one another. In a shifted family slot 0 is read from the prompt's last row, so that this
one is run with the slots and never kept.

For models in float32: the cache gives its values the dtype of its keys, which LLaDA rotates in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from transformers import DynamicCache

from entropy_valley.decoding.reference import stock_logits
from entropy_valley.decoding.reference_orders import Rank, Step, med
from entropy_valley.decoding.schedule import reveal_counts

if TYPE_CHECKING:
    from entropy_valley.model.load import Backbone


@torch.inference_mode()
def decode(
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
    rank, tokens = rank or med(), [backbone.mask_id] * length
    kept, other = Kept(backbone, prompt), Kept(backbone, sourceless)
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
def read(backbone: Backbone, prompt: Sequence[int], length: int, beside: int) -> tuple[list[float], list[int]]:
    """Entropy (nats) and most probable token of every slot of ``length`` masks, the prompt's keys and values being
    those that it has before ``beside`` masks."""
    kept = Kept(backbone, prompt)
    kept.whole([backbone.mask_id] * beside)
    probability = kept.slots([backbone.mask_id] * length).softmax(-1)
    return torch.special.entr(probability).sum(-1).tolist(), probability.argmax(-1).tolist()


class Kept:
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
