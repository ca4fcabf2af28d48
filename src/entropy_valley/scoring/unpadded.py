"""Scores of many segments by a COMET model, in batches without padding: each score has the bits that it has alone.

Only the encoder runs in batches, of sequences with the same number of tokens. What follows it (pooling or the mixture
of layers, and the estimator) is the model's own code on one segment: an estimator gives a single row other bits than
many rows.

The encoder gives most batches the bits of single sequences, but not all: it depends on the machine, and very short
sequences differ. So the first batch of each shape is compared with sequences encoded alone. If a bit differs, all
sequences of this shape are encoded alone.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

CHUNK = 1024  # segments between two times at which finished scores are handed out
TOKENS = {"cpu": 2048, "cuda": 16384}  # of a batch, at most
SEQUENCES = 64  # of a batch, at most
FEWEST = 4  # of a batch: the comparison with sequences alone would cost more than a smaller one saves

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

    embeds = model.hparams.class_identifier in _EMBEDS_SENTENCES
    encoder = Encoder(_embedding(model) if embeds else _layers(model), model.device)
    score = _score_embedded if embeds else _score_joint
    remaining = iter(sorted(segments))  # so that those of one source, encoded once, are in one chunk
    while chunk := list(islice(remaining, CHUNK)):
        with torch.inference_mode():
            scores = score(model, encoder, chunk)
        yield from zip(chunk, scores, strict=True)


def _embedding(model: Any) -> Callable[..., tuple[Any, ...]]:
    """Sentence embeddings, of shape (sequences, size)."""
    return lambda **inputs: (model.get_sentence_embedding(**inputs),)


def _layers(model: Any) -> Callable[..., tuple[Any, ...]]:
    """The hidden states of all layers, each of shape (sequences, tokens, size)."""
    return lambda **inputs: tuple(model.encoder(**inputs)["all_layers"])


def _score_embedded(model: Any, encoder: Encoder, segments: Sequence[Segment]) -> list[float]:
    """Scores by a model that reads source, hypothesis and reference apart: each distinct text is encoded once."""
    import torch

    texts = list(dict.fromkeys(text for segment in segments for text in segment))
    longest = model.encoder.max_positions - 2  # as COMET cuts them
    ids = [torch.tensor([one]) for one in model.encoder.tokenizer(texts, truncation=True, max_length=longest).input_ids]
    sequences = [{"input_ids": one, "attention_mask": torch.ones_like(one)} for one in ids]
    embeddings = {texts[number]: embedding for number, (embedding,) in encoder.encode(sequences)}
    with _replaced(model, "get_sentence_embedding", lambda embedding, _: embedding):
        return [_predicted(model, _named_embeddings(embeddings, segment)) for segment in segments]


def _named_embeddings(embeddings: dict[str, Any], segment: Segment) -> Inputs:
    """The model's inputs of a segment, with embeddings in the place of tokens."""
    named = list(zip(NAMES, segment, strict=False))
    tokens = {f"{name}_input_ids": embeddings[text] for name, text in named}
    return tokens | {f"{name}_attention_mask": None for name, _ in named}


def _score_joint(model: Any, encoder: Encoder, segments: Sequence[Segment]) -> list[float]:
    """Scores by a model that reads the texts of a segment in one sequence, or in three of different texts."""
    samples = [dict(zip(NAMES, segment, strict=False)) for segment in segments]
    prepared = [model.prepare_sample([sample], stage="predict") for sample in samples]
    sequences = [one for inputs in prepared for one in inputs]
    predictions = {}
    for number, layers in encoder.encode(sequences):
        with _replaced(model.encoder, "forward", lambda *_, known=layers, **__: {"all_layers": known}):
            predictions[number] = model.forward(**moved(sequences[number], model.device))
    in_order = (predictions[number] for number in range(len(sequences)))
    with _replaced(model, "forward", lambda **_: next(in_order)):
        return [_predicted(model, moved(inputs, model.device)) for inputs in prepared]


def _predicted(model: Any, inputs: Any) -> float:
    (score,) = model.predict_step(inputs).scores.tolist()
    return score


class Encoder:
    """Runs ``encode``, which maps inputs to tensors with a row for each sequence, on sequences of equal length."""

    def __init__(self, encode: Callable[..., tuple[Any, ...]], device: Any) -> None:
        self._encode, self._device = encode, device
        self._exact: dict[tuple[int, int], bool] = {}  # whether a batch of this shape has the bits of single sequences

    def encode(self, sequences: Sequence[Inputs]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """The number of each sequence with its outputs, of one row; not in order."""
        for batch in self._batches(sequences):
            yield from zip(batch, self._rows([sequences[number] for number in batch]), strict=True)

    def _batches(self, sequences: Sequence[Inputs]) -> Iterator[list[int]]:
        """Numbers of sequences that have the same length; powers of two, so that few shapes need a comparison."""
        by_length = defaultdict(list)
        for number, sequence in enumerate(sequences):
            by_length[sequence["input_ids"].shape[1]].append(number)
        for length, numbers in sorted(by_length.items()):
            most = max(1, min(SEQUENCES, TOKENS.get(self._device.type, TOKENS["cpu"]) // length))
            while numbers:
                size = 1 << min(most, len(numbers)).bit_length() - 1
                size = size if size >= FEWEST else 1
                yield numbers[:size]
                numbers = numbers[size:]

    def _rows(self, batch: Sequence[Inputs]) -> Iterator[tuple[Any, ...]]:
        shape = (len(batch), batch[0]["input_ids"].shape[1])
        if len(batch) > 1 and self._exact.get(shape, True):
            together = self._run(batch)
            if self._exact.setdefault(shape, self._same_alone(batch, together)):
                return (_row(together, number) for number in range(len(batch)))
        return (self._run([one]) for one in batch)

    def _same_alone(self, batch: Sequence[Inputs], together: tuple[Any, ...]) -> bool:
        """Whether the first, a middle and the last sequence of a batch have the bits that they have alone."""
        import torch

        for number in {0, len(batch) // 2, len(batch) - 1}:
            alone, row = self._run([batch[number]]), _row(together, number)
            if not all(torch.equal(one, other) for one, other in zip(alone, row, strict=True)):
                return False
        return True

    def _run(self, batch: Sequence[Inputs]) -> tuple[Any, ...]:
        import torch

        names = [name for name in _ENCODED if name in batch[0]]
        return self._encode(**{name: torch.cat([one[name] for one in batch]).to(self._device) for name in names})


def _row(outputs: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    return tuple(output[number : number + 1] for output in outputs)


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
