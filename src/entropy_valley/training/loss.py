"""The weighted cross-entropy of both objectives, and micro-batches whose losses add up to the batch's loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from entropy_valley.backbone.packing import Packed, Rows, hidden_states
from entropy_valley.training.data import Layout


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
    layout: Layout,
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
