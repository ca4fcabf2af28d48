"""Where engine and reference part, and whether rounding alone decides there."""

from collections.abc import Sequence
from typing import Any

import torch

from entropy_valley.decoding import reference
from entropy_valley.decoding.head import Head, slot_values
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.model.attention import Rows, pack
from entropy_valley.model.load import Backbone


@torch.inference_mode()
def parting(backbone: Backbone, case: Any) -> str:
    """The first step at which the two, from the same canvas, reveal otherwise, and what is between them there."""
    tokens = [backbone.mask_id] * case.length
    counts = [count for count in reveal_counts(case.length, case.steps) if count]
    for step, count in enumerate(counts, 1):
        entropies, best = reference.read(backbone, case.prompt, tokens)
        ours, token = _by_engine(backbone, case.prompt, tokens)
        wanted, taken = (sorted(ours, key=lambda slot: (by[slot], slot))[:count] for by in (entropies, ours))
        error = max(abs(ours[slot] - entropies[slot]) for slot in ours)
        if set(wanted) != set(taken):
            slots = [sorted(set(one) - set(other)) for one, other in ((taken, wanted), (wanted, taken))]
            gap = max(entropies[slot] for slot in slots[0]) - min(entropies[slot] for slot in slots[1])
            return (
                f"step {step} takes slots {slots[0]}, not {slots[1]}, of entropies up to {gap:.1e} nats apart, "
                f"each computed up to {error:.1e} apart"
            )
        if turned := [slot for slot in wanted if best[slot] != token[slot]]:
            gap = max(_margins(backbone, case.prompt, tokens)[slot] for slot in turned)
            return f"step {step} has another token in slots {turned}, the two best logits {gap:.1e} apart"
        for slot in wanted:
            tokens[slot] = best[slot]
    return "from the same canvas no step differs: not a matter of rounding"


def _by_engine(
    backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int]
) -> tuple[dict[int, float], dict[int, int]]:
    """Entropy and most probable token of the masked slots; on one thread as in any company."""
    slots = [slot for slot, token in enumerate(tokens) if token == backbone.mask_id]
    rows = Rows(torch.tensor(slots) + len(prompt) - int(backbone.shifted), (len(slots),))
    packed = pack([[*prompt, *tokens]], backbone.device, [backbone.prefix(len(prompt))])
    states = backbone.model.hidden_states(packed, rows)
    values = slot_values(Head(backbone.model.lm_head, backbone.float32_head), states, backbone.mask_id, backbone.eos_id)
    entropies, best = (dict(zip(slots, column.tolist(), strict=True)) for column in (values.entropy, values.token))
    return entropies, best


def _margins(backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """By how much each slot's best logit leads the next, as the reference has them."""
    best = reference.slot_logits(backbone, prompt, tokens).topk(2).values
    return (best[:, 0] - best[:, 1]).tolist()
