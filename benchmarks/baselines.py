"""What public samplers do: padded batches, the logits of every row, and nothing reused.

The stock forward with torch's fused attention under a mask, float32 softmax: no handicap beyond the method's own.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from entropy_valley.decoding.canvas import Ledger
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.lengths import Sentence
from entropy_valley.lengths.base import candidate_length
from entropy_valley.model.load import Backbone, stock_model


@dataclass(frozen=True)
class Padded:
    """Algorithm 1 on batches of ``batch`` sentences of similar length; one: sentence by sentence.

    All T passes of every batch, or where ``skip`` only those in which some canvas has a slot to reveal.
    """

    backbone: Backbone
    ledger: Ledger
    batch: int
    skip: bool

    @functools.cached_property
    def _stock(self) -> Any:
        return stock_model(self.backbone.family, self.backbone.model, "sdpa")

    @torch.inference_mode()
    def decode(
        self, sentences: Sequence[Sentence], prompts: Sequence[Sequence[int]], ratios: Sequence[float], steps: int
    ) -> list[list[int]]:
        """The canvas tokens of each sentence; with several ratios each is probed, one after the other."""
        order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
        filled: list[list[int]] = [[]] * len(prompts)
        for start in range(0, len(order), self.batch):
            places = order[start : start + self.batch]
            sources = [sentences[place].source_tokens for place in places]
            inputs = [list(prompts[place]) for place in places]
            lengths = self._choose(inputs, sources, ratios)
            for place, tokens in zip(places, self._fill(inputs, lengths, steps), strict=True):
                filled[place] = tokens
        return filled

    def _choose(self, prompts: list[list[int]], sources: list[int], ratios: Sequence[float]) -> list[int]:
        """The candidate of lowest mean entropy; candidates by rank, each sentence's own, as far as it has any."""
        candidates = [sorted({candidate_length(ratio, source) for ratio in ratios}) for source in sources]
        if len(ratios) == 1:
            return [lengths[0] for lengths in candidates]
        best = [(float("inf"), 0)] * len(prompts)
        for rank in range(max(map(len, candidates))):
            canvases = [(place, lengths[rank]) for place, lengths in enumerate(candidates) if rank < len(lengths)]
            entropies, _ = self._read([prompts[place] + [self.backbone.mask_id] * length for place, length in canvases])
            for row, (place, length) in enumerate(canvases):
                start = len(prompts[place])
                mean = entropies[row, start : start + length - 1].mean().item()
                best[place] = min(best[place], (round(mean, 6), length))
        return [length for _, length in best]

    def _fill(self, prompts: list[list[int]], lengths: list[int], steps: int) -> list[list[int]]:
        mask = self.backbone.mask_id
        canvases = [prompt + [mask] * length for prompt, length in zip(prompts, lengths, strict=True)]
        plans = [reveal_counts(length, steps) for length in lengths]
        for counts in zip(*plans, strict=True):
            if self.skip and not any(counts):
                continue
            entropies, best = self._read(canvases)
            for row, (canvas, prompt, count) in enumerate(zip(canvases, prompts, counts, strict=True)):
                slots = [place for place in range(len(prompt), len(canvas)) if canvas[place] == mask]
                chosen = entropies[row, slots].argsort(stable=True)[:count].tolist()
                for place in (slots[index] for index in chosen):
                    canvas[place] = int(best[row, place])
        return [canvas[len(prompt) :] for canvas, prompt in zip(canvases, prompts, strict=True)]

    def _read(self, canvases: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Entropy (nats) and argmax of every row of a padded batch, (batch, longest), on the CPU."""
        device = self.backbone.device
        ids = pad_sequence([torch.tensor(canvas) for canvas in canvases], batch_first=True).to(device)
        lengths = torch.tensor([len(canvas) for canvas in canvases], device=device)
        seen = torch.arange(ids.shape[1], device=device) < lengths[:, None]
        attend = seen[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        logits = self._stock(input_ids=ids, attention_mask=attend, use_cache=False).logits
        self.ledger.update(passes=len(canvases), tokens=ids.numel(), rows=ids.numel())
        logits[..., self.backbone.mask_id] = float("-inf")
        entropies = torch.special.entr(logits.float().softmax(-1)).sum(-1)
        return entropies.cpu(), logits.argmax(-1).cpu()
