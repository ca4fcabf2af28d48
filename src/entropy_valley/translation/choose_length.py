"""A canvas length for anybody's model: all that is needed is a function from token ids to logits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from entropy_valley.decoding.canvas import ProbeResult
from entropy_valley.decoding.head import values_of_logits
from entropy_valley.errors import InputError, brief
from entropy_valley.lengths import Choice, LengthMethod, Sentence
from entropy_valley.lengths.base import choosing, declared
from entropy_valley.lengths.ev import mean_entropy, valley
from entropy_valley.translation.translator import Translation


def choose_length(
    logits_of: Callable[[torch.Tensor], Any],
    prompt: Sequence[int],
    method: LengthMethod | Iterable[int],
    *,
    mask_id: int,
    eos_id: int,
    shifted: bool = False,
    source_tokens: int = 0,
    source: str = "",
) -> Translation:
    """The canvas that a length method chooses behind a prompt, and what it read of each candidate. Nothing is denoised.

    ``logits_of`` gets ids (1, rows) of the prompt and an all-mask canvas, and returns logits (1, rows, vocabulary) or
    (rows, vocabulary), or an object that has them as ``logits``. All rows must see one another. ``prompt``: token ids.
    ``method``: a length method, or the candidate lengths of an Entropy-Valley, which are two slots or more, the last
    one for the EOS. ``shifted``: slot i is read from row i - 1, as in Dream. ``source_tokens`` is |x|, for a method
    with ratios; ``source`` the text, for a method that reads it.

    The :class:`.Translation` has no text. Its ``canvas`` is the choice, ``entropies`` the curve, ``readings`` the
    values of each slot. Raises InputError for a method that needs more than this, for lengths below 2, and for logits
    of another shape or that are NaN.
    """
    chosen_by: Any = method if hasattr(method, "propose") else _Candidates(method)
    for need, what in (
        ("sees_reference", "the reference"), ("uses_length_head", "a length head"), ("draft_steps", "denoising steps"),
    ):  # fmt: skip
        if declared(chosen_by, need):
            remedy = "Give another one, or candidate lengths."
            raise InputError(f"length method {type(chosen_by).__name__}", f"needs {what}", remedy)
    prompt = [int(token) for token in prompt]

    def read(slots: int) -> ProbeResult:
        ids = torch.tensor([prompt + [mask_id] * slots])
        first = len(prompt) - int(shifted)
        with torch.inference_mode():
            logits = _rows(logits_of(ids), ids.shape[1])[first : first + slots]
            values = values_of_logits(logits, mask_id, eos_id)
        columns = values.token, values.entropy, values.logprob, values.eos
        return ProbeResult(*(tuple(column.tolist()) for column in columns))

    probes: dict[int, ProbeResult] = {}
    rounds = choosing(chosen_by, Sentence(source_tokens, source=source), int, probes)
    row = _answered(rounds, read)
    if row["length"] not in probes:
        probes[row["length"]] = read(row["length"])
    entropies = {slots: mean_entropy(one) if slots > 1 else None for slots, one in sorted(probes.items())}
    scores = dict(zip(row["candidates"], row["scores"], strict=False))
    return Translation("", row["length"], scores, row["length"], entropies, readings=probes)


class _Candidates:
    """Entropy-Valley over given lengths."""

    sees_reference = False

    def __init__(self, lengths: Any) -> None:
        self.lengths = list(lengths) if isinstance(lengths, Iterable) else [lengths]
        if not self.lengths or not all(isinstance(slots, int) and slots > 1 for slots in self.lengths):
            remedy = "Give a length method, or whole numbers of 2 or more: the last slot is for the EOS."
            raise InputError("method", f"{brief(lengths, 60)} are no lengths", remedy)

    def propose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Iterable[int]:
        return self.lengths

    def choose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Choice:
        return valley(probes)


def _rows(answer: Any, rows: int) -> torch.Tensor:
    """The logits (rows, vocabulary) of an answer."""
    logits = getattr(answer, "logits", answer)
    if not isinstance(logits, torch.Tensor) or logits.shape[:-1] not in ((1, rows), (rows,)):
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else brief(logits, 60)
        raise InputError("logits_of", f"returns {shape} for {rows} ids", "Return logits (1, rows, vocabulary).")
    if logits.isnan().any():
        raise InputError("logits_of", "returns NaN", "Correct the model, or its precision.")
    return logits.reshape(rows, -1)


def _answered(rounds: Any, read: Callable[[int], ProbeResult]) -> dict[str, Any]:
    """What a choosing returns in the end, each round of whose lengths is read."""
    try:
        asked = next(rounds)
        while True:
            asked = rounds.send([read(slots) for slots in asked])
    except StopIteration as end:
        return end.value
