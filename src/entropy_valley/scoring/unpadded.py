"""Scores of many segments by a COMET model, in batches without padding: a score does not depend on the other segments.

A batch has sequences of one length, and its shape depends on this length alone. On a GPU it has 64 rows, fewer for long
sequences: the kernel that computes a product, and so the order of its sums, depends on the number of rows. The last
batch of a length is filled by repeating a sequence, so a segment alone runs in the same shape as in company, and each
row is computed from itself. The estimator always gets 64 rows.

On a CPU a batch has one row, which gives the bits of COMET run on one segment.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

ROWS = {"cpu": 1, "cuda": 64}  # of a batch, and of the estimator's; signatures of scores have it
TOKENS = 16384  # of a batch, at most: sequences of more than 256 tokens have fewer rows
CHUNK = {"cpu": 1024, "cuda": 16384}  # segments between two times at which finished scores are handed out

NAMES = ("src", "mt", "ref")
Segment = tuple[str, ...]
"""Source, hypothesis and, where the model reads it, reference."""
Inputs = dict[str, Any]
"""A sequence as the encoder reads it: tensors of one row."""

_EMBEDS_SENTENCES = ("regression_metric", "referenceless_regression_metric")
_ENCODED = ("input_ids", "attention_mask", "token_type_ids")


def unpadded_scores(model: Any, segments: Sequence[Segment]) -> Iterator[tuple[Segment, float]]:
    """Each of ``segments``, which are distinct, with its score; not in their order.

    ``model`` is a COMET model in evaluation mode.
    """
    import torch

    score = _score_embedded if model.hparams.class_identifier in _EMBEDS_SENTENCES else _score_joint
    remaining = iter(sorted(segments))  # so that those of one source, encoded once, are in one chunk
    while chunk := list(islice(remaining, CHUNK[model.device.type])):
        with torch.inference_mode():
            scores = score(model, chunk)
        yield from zip(chunk, scores, strict=True)


def _score_embedded(model: Any, segments: Sequence[Segment]) -> list[float]:
    """Scores by a model that reads source, hypothesis and reference apart: each distinct text is encoded once."""
    import torch

    texts = list(dict.fromkeys(text for segment in segments for text in segment))
    longest = model.encoder.max_positions - 2  # as COMET cuts them
    ids = [torch.tensor([one]) for one in model.encoder.tokenizer(texts, truncation=True, max_length=longest).input_ids]
    sequences = [{"input_ids": one, "attention_mask": torch.ones_like(one)} for one in ids]

    def embed(**inputs: Any) -> Inputs:
        return {"embedding": model.get_sentence_embedding(**inputs)}

    embedded = dict(zip(texts, _by_length(embed, sequences, model.device), strict=True))
    named = [
        {f"{name}_input_ids": embedded[text]["embedding"] for name, text in zip(NAMES, segment, strict=False)}
        for segment in segments
    ]
    masks = {name.replace("input_ids", "attention_mask"): None for name in named[0]}
    rows, scores = ROWS[model.device.type], []
    with _replaced(model, "get_sentence_embedding", lambda embedding, _: embedding):
        for start in range(0, len(named), rows):
            batch = named[start : start + rows]
            scores += model.predict_step(_filled(batch, rows) | masks).scores.tolist()[: len(batch)]
    return scores


def _score_joint(model: Any, segments: Sequence[Segment]) -> list[float]:
    """Scores by a model that reads the texts of a segment in one sequence, or in three of different texts."""
    samples = [dict(zip(NAMES, segment, strict=False)) for segment in segments]
    prepared = [model.prepare_sample([sample], stage="predict") for sample in samples]
    sequences = [{name: one[name] for name in _ENCODED if name in one} for inputs in prepared for one in inputs]
    predictions = iter(_by_length(model.forward, sequences, model.device))
    with _replaced(model, "forward", lambda **_: next(predictions)):
        return [model.predict_step(moved(inputs, model.device)).scores.item() for inputs in prepared]


def _by_length(run: Callable[..., Any], sequences: Sequence[Inputs], device: Any) -> list[Any]:
    """What ``run`` returns for each sequence, in order: a mapping to tensors of one row."""
    outputs: dict[int, Any] = {}
    by_length = defaultdict(list)
    for number, sequence in enumerate(sequences):
        by_length[sequence["input_ids"].shape[1]].append(number)
    for length, numbers in by_length.items():
        # A power of two fills a kernel's blocks of rows. Rows of an incomplete block may be summed in another order.
        rows = min(ROWS[device.type], 1 << max(1, TOKENS // length).bit_length() - 1)
        for start in range(0, len(numbers), rows):
            batch = numbers[start : start + rows]
            together = run(**moved(_filled([sequences[number] for number in batch], rows), device))
            for row, number in enumerate(batch):
                outputs[number] = type(together)(**{name: one[row : row + 1] for name, one in together.items()})
    return [outputs[number] for number in range(len(sequences))]


def _filled(inputs: Sequence[Inputs], rows: int) -> Inputs:
    """Inputs of one row each as one of ``rows`` rows; the first one is repeated where there are fewer."""
    import torch

    filled = [*inputs, *[inputs[0]] * (rows - len(inputs))]
    return {name: torch.cat([one[name] for one in filled]) for name in inputs[0]}


def moved(inputs: Any, device: Any) -> Any:
    """A model's inputs on its device; unified models have one mapping each for source, reference and both."""
    if isinstance(inputs, tuple):
        return tuple(moved(one, device) for one in inputs)
    return {name: value.to(device) if hasattr(value, "to") else value for name, value in inputs.items()}


@contextlib.contextmanager
def _replaced(module: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """A module whose method ``name`` is another function while the block runs."""
    setattr(module, name, function)
    try:
        yield
    finally:
        delattr(module, name)
