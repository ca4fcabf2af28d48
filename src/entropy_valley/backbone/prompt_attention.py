"""What the rows of a prompt attend to, in training and in decoding: the choices, and the one of a model's params."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

BOTH_WAYS, PREFIX = "bidirectional", "prefix"
Attention = Literal["bidirectional", "prefix"]
ATTENTIONS: dict[Attention, str] = {
    BOTH_WAYS: "all rows attend to one another, as the checkpoints were trained",
    PREFIX: "the rows of the prompt attend to the prompt alone, those of the canvas to everything",
}


def attention_of(spec: Mapping[str, Any]) -> str:
    """That of a model's params, or of the params in an ``adapter.json``: they name it where it is not the usual one."""
    return spec.get("attention", BOTH_WAYS)
