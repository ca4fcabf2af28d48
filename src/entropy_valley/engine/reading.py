"""What one forward pass says about each masked slot of a canvas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

VALUES = ("tokens", "entropies", "logprobs", "eos_logprobs")  # what every reading has, in the order of its columns


@dataclass(frozen=True)
class Reading:
    """One value per slot, in slot order: most probable token, entropy of its distribution, log-probabilities of that
    token and of the EOS; and its SIG (see :mod:`entropy_valley.engine.sig`), where the canvas was read without the
    source too.

    Nats; the mask token has no probability. JSON keeps every bit of a float, so a decode that starts from a stored
    reading is the decode that computes it.
    """

    tokens: tuple[int, ...]
    entropies: tuple[float, ...]
    logprobs: tuple[float, ...]
    eos_logprobs: tuple[float, ...]
    sigs: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value or name != "sigs"}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        known = [tuple(value[key]) for key in VALUES]
        sum(map(sum, known))  # TypeError for what is no number
        return cls(*known, tuple(value.get("sigs", ())))
