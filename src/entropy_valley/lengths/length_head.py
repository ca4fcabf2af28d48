"""A length head, after CMLM: one linear layer from a frozen checkpoint's mean prompt state to the canvas length.

"Mask-Predict" (arXiv:1904.09324) predicts the target length from the encoder's state of a special token; a decoder-only
backbone has none, and the mean of its final-norm states over the tokens of the prompt alone stands for it.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from safetensors.torch import load, save
from torch import Tensor
from torch.nn.functional import cross_entropy

from entropy_valley.decoding.canvas import SHORTEST
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.head import whole_sums
from entropy_valley.errors import InputError
from entropy_valley.model.attention import pack

KEPT = 32  # lengths of a prediction: more than any beam takes


@dataclass(frozen=True)
class LengthHead:
    """Weight (classes, width) and bias (classes,), float32; class c is a canvas of ``SHORTEST`` + c slots, and the last
    one stands for all longer ones too."""

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, weights: bytes, device: torch.device | str = "cpu") -> Self:
        """From what :meth:`to_bytes` gives."""
        return cls(**{name: tensor.to(device) for name, tensor in load(weights).items()})

    def to_bytes(self) -> bytes:
        """Its content as a ``.safetensors``."""
        return save({name: tensor.cpu().contiguous() for name, tensor in vars(self).items()})

    def logprobs(self, states: Tensor) -> Tensor:
        """Log-probability of each class, (sentences, classes) in float64, from mean states (sentences, width)."""
        return (states.to(self.weight) @ self.weight.T + self.bias).double().log_softmax(-1)

    def likeliest(self, state: Tensor, room: int) -> dict[int, float]:
        """The log-probabilities of the ``KEPT`` likeliest canvas lengths for one mean state (width,), six decimals.

        Likeliest first, the shorter one on a tie; none is longer than ``room``, unless the shortest canvas is.
        """
        values = [round(value, 6) for value in self.logprobs(state[None])[0].tolist()]
        lengths = range(SHORTEST, max(SHORTEST, min(room, SHORTEST + len(values) - 1)) + 1)
        ordered = sorted(lengths, key=lambda length: (-values[length - SHORTEST], length))
        return {length: values[length - SHORTEST] for length in ordered[:KEPT]}


@torch.no_grad()
def mean_states(engine: Engine, prompts: Sequence[Sequence[int]]) -> Iterator[tuple[int, Tensor]]:
    """(place, mean of the final-norm states over its tokens, (width,) in float32) of each prompt, the longest first.

    A prompt is a sequence by itself: no canvas, nothing of its neighbours. A pass has as many tokens as the engine's.
    """
    fill, model = engine.fill, engine.backbone.model
    waiting = sorted(range(len(prompts)), key=lambda place: -len(prompts[place]))
    while waiting:
        taken = max(1, engine.budget // len(prompts[waiting[0]]))
        places, waiting = waiting[:taken], waiting[taken:]
        packed = pack([prompts[place] for place in places], model.device)
        with whole_sums() if fill else contextlib.nullcontext():
            states = model.hidden_states(packed, fill=fill).float()
        engine.ledger.update(passes=1, tokens=len(states), padded=max(0, (fill or 0) - len(states)))
        means = (part.mean(0) for part in states.split(packed.lengths))
        yield from zip(places, means, strict=True)


def predictions(
    head: LengthHead, engine: Engine, prompts: Sequence[Sequence[int]]
) -> Iterator[tuple[int, dict[int, float]]]:
    """(place, likeliest canvas lengths with their log-probabilities) of each prompt, by :func:`mean_states`."""
    for place, state in mean_states(engine, prompts):
        yield place, head.likeliest(state, engine.backbone.context - len(prompts[place]))


def fit(
    states: Tensor,
    lengths: Sequence[int],
    *,
    longest: int,
    epochs: int,
    learning_rate: float,
    batch: int,
    seed: int,
) -> LengthHead:
    """Train a head on mean states (pairs, width) and canvas lengths by cross-entropy.

    Lengths beyond ``longest`` count as it. Adam from a layer of zeros; ``seed`` orders the pairs. The layer is trained
    on standardised states, so that one learning rate suits every backbone, and is then written for states as they are.
    """
    classes = (torch.tensor(lengths).clamp(SHORTEST, longest) - SHORTEST).to(states.device)
    mean, std = states.mean(0), states.std(0, correction=0).clamp_min(1e-6)
    layer = torch.nn.Linear(states.shape[1], longest - SHORTEST + 1, device=states.device)
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    optimizer = torch.optim.Adam(layer.parameters(), learning_rate)
    draw = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for places in torch.randperm(len(lengths), generator=draw).to(states.device).split(batch):
            optimizer.zero_grad()
            cross_entropy(layer((states[places] - mean) / std), classes[places]).backward()
            optimizer.step()
    weight = (layer.weight / std).detach()
    if not weight.isfinite().all():
        raise InputError("length head", "its training diverged", "Lower `length_head_training.learning_rate`.")
    return LengthHead(weight, (layer.bias - weight @ mean).detach())


def report(head: LengthHead, states: Tensor, lengths: Sequence[int]) -> dict[str, Any]:
    """How often the likeliest class is the true canvas length, and the mean distance from it, over ``pairs``."""
    predicted = head.logprobs(states).argmax(-1).cpu() + SHORTEST
    errors = (predicted - torch.tensor(lengths)).abs().double()
    return {
        "pairs": len(lengths),
        "accuracy": round((errors == 0).sum().item() / max(1, len(lengths)), 6),
        "mae": round(errors.sum().item() / max(1, len(lengths)), 6),
    }
