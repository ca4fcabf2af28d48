"""The engine against the plain algorithm, and attention against its definition, on tiny random models."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from entropy_valley.checking import tiny
from entropy_valley.checking.line import CheckError
from entropy_valley.decoding import reference
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import make_order, reveal_counts
from entropy_valley.decoding.requests import Canvas, Queue
from entropy_valley.model.attention import Segments, has_kernel, packed_attention
from entropy_valley.model.load import Backbone, load_backbone

FAMILIES = ("llada", "dream")  # not shifted, with rotation in float32; shifted, with biases
CASES = 12  # of each family
# What a random model decodes may hang on the last bit of two logits: this share of canvases may differ.
_UNLIKE = 0.1
# Distances to float32 of two ways to round are alike, not equal.
_FARTHER = 2.0
Case = tuple[list[int], int]


def checkpoints(folder: Path) -> dict[str, Path]:
    """A tiny checkpoint of each family, written at the first call."""
    found = {name: folder / name for name in FAMILIES}
    for name, path in found.items():
        if not path.exists():
            tiny.write(path, name, eos=1.5)
    return found


def same_texts(folder: Path, device: str) -> str:
    """In float32 the engine decodes what the plain algorithm does."""
    same, cases = 0, 0
    for backbone in _loaded(folder, device, "float32"):
        drawn = _draw(backbone)
        canvases = [Canvas(prompt, length, [n for n in reveal_counts(length, 8) if n]) for prompt, length in drawn]
        done = dict(Engine(backbone).run(Queue(enumerate(canvases)), make_order("med")))
        ours = [done[place].tokens[: done[place].text] for place in range(len(drawn))]
        theirs = [reference.decode(backbone, prompt, length, 8)[1] for prompt, length in drawn]
        same, cases = same + sum(map(list.__eq__, ours, theirs)), cases + len(drawn)
    said = f"{same} of {cases} canvases decoded as by the plain algorithm"
    if same < (1 - _UNLIKE) * cases:
        raise CheckError(f"{said}: this device computes something else in float32")
    return said


def same_entropies(folder: Path, device: str) -> str:
    """In bfloat16 the engine's entropies are as near to float32 as those of the plain algorithm in bfloat16."""
    distances = []
    for exact, rounded in zip(_loaded(folder, device, "float32"), _loaded(folder, device, "bfloat16"), strict=True):
        drawn = _draw(exact)
        yardstick = _plain(exact, drawn)
        read = dict(Engine(rounded).run(Queue((place, Canvas(*case)) for place, case in enumerate(drawn))))
        ours = [entropy for place in range(len(drawn)) for entropy in read[place].entropies]
        distances.append((_distance(ours, yardstick), _distance(_plain(rounded, drawn), yardstick)))
    ours, theirs = (sum(column) / len(distances) for column in zip(*distances, strict=True))
    said = f"entropies {ours:.2g} nats from float32; the plain algorithm's {theirs:.2g}"
    if not ours <= _FARTHER * theirs + 1e-3:
        raise CheckError(f"{said}: the engine computes something else in bfloat16")
    return said


def _loaded(folder: Path, device: str, dtype: str) -> Iterator[Backbone]:
    for name, path in checkpoints(folder).items():
        yield load_backbone(path, name, device=device, dtype=dtype)


def _draw(backbone: Backbone) -> list[Case]:
    draw = random.Random(1)
    prompts = [draw.sample(range(5, backbone.model.config.vocab_size), draw.randint(4, 20)) for _ in range(CASES)]
    return [(prompt, draw.randint(2, 24)) for prompt in prompts]


def _plain(backbone: Backbone, drawn: Sequence[Case]) -> list[float]:
    """The entropies of all slots of all-mask canvases, by the plain algorithm."""
    masks = [(prompt, [backbone.mask_id] * length) for prompt, length in drawn]
    return [entropy for prompt, tokens in masks for entropy in reference.read(backbone, prompt, tokens)[0]]


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) / len(other)


@torch.inference_mode()
def attention(device: str) -> str:
    """Attention of packed sequences, with grouped keys, fewer queries than keys, and causal, is what it is by hand."""
    torch.manual_seed(0)
    segments = Segments((17, 5, 5, 130), (4, 5, 1, 130))
    query, key, value = (torch.randn(1, heads, rows, 64, device=device).bfloat16()
                         for heads, rows in ((8, sum(segments.queries)), (2, 157), (2, 157)))  # fmt: skip
    given, _ = packed_attention(None, query, key, value, None, scaling=0.125, segments=segments)
    off = (given[0].double() - _by_hand(query, key, value, segments, False)).abs().max().item()
    whole = Segments(segments.keys, segments.keys)
    query = torch.randn(1, 8, 157, 64, device=device).bfloat16()
    given, _ = packed_attention(None, query, key, value, None, scaling=0.125, segments=whole, causal=True)
    off = max(off, (given[0].double() - _by_hand(query, key, value, whole, True)).abs().max().item())
    kernel = "the variable-length kernel" if has_kernel(query) else "scaled dot products for each sequence"
    said = f"{kernel}: at most {off:.4f} from the definition"
    if not off < 0.03:
        raise CheckError(said)
    return said


def _by_hand(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, segments: Segments, causal: bool
) -> torch.Tensor:
    """The definition in float64, sequence by sequence: (query rows, heads, width)."""
    groups, pieces = query.shape[1] // key.shape[1], []
    rows = [tensor[0].double() for tensor in (query, key, value)]
    key_rows, value_rows = (tensor.repeat_interleave(groups, 0) for tensor in rows[1:])
    parts = zip(
        rows[0].split(segments.queries, 1),
        key_rows.split(segments.keys, 1),
        value_rows.split(segments.keys, 1),
        strict=True,
    )
    for asked, known, content in parts:
        scores = asked @ known.transpose(1, 2) * 0.125
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
        pieces.append((scores.softmax(-1) @ content).transpose(0, 1))
    return torch.cat(pieces)
