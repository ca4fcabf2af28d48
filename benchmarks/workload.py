"""What the benchmarks run: random-weight models in LLaDA's shape, and prompts with the lengths of real sentences."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from entropy_valley.decoding.canvas import CachePolicy
from entropy_valley.lengths import Sentence
from entropy_valley.model.families import find_family
from entropy_valley.model.load import Backbone, empty_model
from entropy_valley.translation.sentences import Sentences

LENGTHS = Path(__file__).with_name("wmt22-en-zh.lengths")
TEMPLATE = 12  # tokens that the paper's prompt puts around a source
EOS, MASK = 0, 1
LLADA = find_family("llada")


@dataclass(frozen=True)
class Shape:
    """A model's sizes, and how many sentences a round decodes."""

    vocabulary: int
    width: int
    layers: int
    ffn: int
    sentences: int
    heads: int = 8


SHAPES = {
    "body-heavy": Shape(8192, 512, 16, 1536, 48),  # the LM head's share of the work is 7 %, as in the 8B model
    "real-vocabulary": Shape(126464, 256, 8, 768, 16),
    "small": Shape(8192, 256, 4, 768, 48),
    "tiny": Shape(2560, 128, 3, 384, 60),  # the demo's LLaDA-tiny
    "whole-test-set": Shape(8192, 16, 1, 16, 2037, 2),  # next to no model, for counting passes
    "8b": Shape(126464, 4096, 32, 12288, 512, 32),
}


class Numbered:
    """A prompt for each number, of tokens at random."""

    def __init__(self, prompts: Sequence[list[int]]) -> None:
        self._prompts = prompts

    def encode(self, source: str) -> list[int]:
        return self._prompts[int(source)] if source else []


@dataclass(frozen=True)
class Workload:
    """A backbone, sentences to translate with it, and their prompts of random tokens."""

    shape: Shape
    backbone: Backbone
    sentences: list[Sentence]
    prompts: list[list[int]]

    def in_prompts(self, cache: CachePolicy | None) -> Sentences:
        """Its sentences in their prompts."""
        rows = [{"id": number, "source": str(number)} for number in range(len(self.prompts))]
        return Sentences("prompts", rows, Numbered(self.prompts), self.backbone.context, cache)

    def longest(self, count: int) -> Workload:
        """Its longest sentences alone."""
        places = sorted(range(len(self.prompts)), key=lambda place: -len(self.prompts[place]))[:count]
        sentences, prompts = ([column[place] for place in places] for column in (self.sentences, self.prompts))
        return dataclasses.replace(self, sentences=sentences, prompts=prompts)


def make(
    shape: Shape, device: str, sentences: int | None = None, lengths: Path = LENGTHS, scale: float = 1
) -> Workload:
    """Every so-manieth length of the file, times ``scale``; float32 on a CPU, bfloat16 on a GPU."""
    wanted, counts = sentences or shape.sentences, read_lengths(lengths)
    sizes = [max(1, round(scale * counts[place * len(counts) // wanted])) for place in range(wanted)]
    rng = random.Random(1)
    prompts = [[rng.randrange(2, shape.vocabulary) for _ in range(size + TEMPLATE)] for size in sizes]
    return Workload(shape, _backbone(shape, device), [Sentence(size) for size in sizes], prompts)


def read_lengths(path: Path) -> list[int]:
    """Source tokens of each sentence, one number a line; lines with # are comments."""
    lengths = [int(line) for line in path.read_text().splitlines() if not line.startswith("#")]
    if not lengths or min(lengths) < 1:
        raise SystemExit(f"{path}: no sentences, or one without tokens. Give one positive number a line.")
    return lengths


def random_model(shape: Shape, device: str) -> Any:
    """LLaDA's architecture in these sizes with random weights; float32 on a CPU, bfloat16 on a GPU."""
    arguments = dict(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.ffn,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=4096,
        rope_theta=5e5,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
    )
    torch.manual_seed(1)
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    return empty_model(LLADA, arguments, dtype, device).requires_grad_(False)


def _backbone(shape: Shape, device: str) -> Backbone:
    model = random_model(shape, device).eval()
    # Wider than a fresh model's, whose flat distributions leave the reveal order to rounding.
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.mul_(2)
    context = model.config.max_position_embeddings
    return Backbone(LLADA, model, None, MASK, EOS, None, "", shifted=False, context=context)


def flops(shape: Shape, passes: Sequence[tuple[int, int]]) -> float:
    """Multiplications and additions of (rows, masked rows) canvas passes that cannot be spared.

    Of the last layer only keys and values are needed on rows that are not masked, and the head on none of them.
    """
    attention, ffn = shape.width * shape.width, 3 * shape.width * shape.ffn
    layer = 4 * attention + ffn
    total = 0.0
    for rows, masked in passes:
        body = (shape.layers - 1) * rows * layer + rows * 2 * attention + masked * (layer - 2 * attention)
        scores = 2 * shape.width * rows * ((shape.layers - 1) * rows + masked)
        total += 2 * (body + scores + masked * shape.width * shape.vocabulary)
    return total
