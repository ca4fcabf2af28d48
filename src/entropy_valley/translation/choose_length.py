"""A canvas length for anybody's model: all that is needed is a function from token ids to logits."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from entropy_valley.decoding.canvas import ProbeResult
from entropy_valley.decoding.head import values_of_logits
from entropy_valley.errors import InputError, brief
from entropy_valley.lengths import LengthMethod, Sentence, make_method
from entropy_valley.lengths.base import choosing, declared
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
    values of each slot. Raises InputError for a method that needs more than this or than what is given, for lengths
    below 2, and for logits of another shape or that are NaN.
    """
    chosen_by: Any = method
    if not hasattr(method, "propose"):
        chosen_by = make_method("ev", {"lengths": list(method)})
    for need, what in (
        ("sees_reference", "the reference"), ("uses_length_head", "a length head"), ("draft_steps", "denoising steps"),
    ):  # fmt: skip
        if declared(chosen_by, need):
            remedy = "Give another one, or candidate lengths."
            raise InputError(f"length method {type(chosen_by).__name__}", f"needs {what}", remedy)
    if not source_tokens and (getattr(chosen_by, "ratios", None) or declared(chosen_by, "uses_statistics")):
        problem = f"not given, but {type(chosen_by).__name__} computes lengths from |x|"
        raise InputError("source_tokens", problem, "Give the number of tokens of the source.")
    prompt = [int(token) for token in prompt]

    def read(slots: int) -> ProbeResult:
        ids = torch.tensor([prompt + [mask_id] * slots])
        first, rows = len(prompt) - int(shifted), ids.shape[1]
        with torch.inference_mode():
            answer = logits_of(ids)
            logits = getattr(answer, "logits", answer)
            if not isinstance(logits, torch.Tensor) or logits.shape[:-1] not in ((1, rows), (rows,)):
                shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else brief(logits, 60)
                raise InputError("logits_of", f"returns {shape} for {rows} ids", "Return logits (1, rows, vocabulary).")
            if logits.isnan().any():
                raise InputError("logits_of", "returns NaN", "Correct the model, or its precision.")
            values = values_of_logits(logits.reshape(rows, -1)[first : first + slots], mask_id, eos_id)
        columns = values.token, values.entropy, values.logprob, values.eos
        return ProbeResult(*(tuple(column.tolist()) for column in columns))

    rounds = choosing(chosen_by, Sentence(source_tokens, source=source), read)
    try:
        readings = next(rounds)
        while True:
            readings = rounds.send(readings)
    except StopIteration as end:
        row, probes = end.value
    if row["length"] not in probes:
        probes[row["length"]] = read(row["length"])
    return Translation.of(row, probes)
