"""What sets one family of checkpoints apart from another, as data."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
STOCK_FIELDS = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
    "rope_theta",
    "rms_norm_eps",
    "tie_word_embeddings",
)
# What stock Llama takes for granted under the stock names; a checkpoint that says otherwise computes another function.
LLAMA_FIXED = {
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "rope_scaling": None,
}


@dataclass(frozen=True)
class Release:
    """A checkpoint as its authors published it on the Hugging Face hub.

    ``config`` holds what its ``config.json`` is known to say and the computation depends on, under the stock names;
    ``ids`` the ids of its ``mask``, ``eos``, ``pad`` and ``bos`` token (None: it has none, or none that is used), true
    of any checkpoint with a vocabulary of its size. ``revision`` is the pinned commit; None: the newest is resolved
    once and written to the results. A ``gated`` one wants its licence accepted first.
    """

    repository: str
    licence: str
    config: dict[str, Any]
    ids: dict[str, int | None]
    revision: str | None = None
    gated: bool = False


@dataclass(frozen=True)
class Family:
    """A released checkpoint layout and the stock transformers class that computes the same function.

    ``architecture`` is a stock class of Llama's build: rotary embedding ``model.rotary_emb``, blocks ``model.layers``
    of ``self_attn`` and ``mlp``, and an ``lm_head`` that is not tied to the embeddings.

    ``names`` pairs released with stock tensor names, ``{i}`` standing for the block; empty means equal names.
    ``to_stock`` turns the released ``config.json`` into keyword arguments of the stock config class, and
    ``to_released`` turns a stock config into the released one; ``fixed`` holds the fields whose other values
    would mean another function, and ``defaults`` what the authors' class takes for one that ``config.json`` leaves out,
    where that is not what ``fixed`` says.

    ``shifted`` families predict the next position: the logits of slot i are read from row i - 1. A ``causal`` family
    is an autoregressive one: it has no mask token, attends to the past alone and predicts the next position.
    ``float32_rotary`` rotates queries and keys in float32 whatever the model's dtype; stock classes rotate in the
    model's.

    The special tokens are literal strings of the released tokenizer (None: it has none, or none that is
    used). A ``tokenizer_class`` reads the files of a release without ``tokenizer.json``.
    ``chat`` wraps a prompt as the family's instruction tuning did, at ``{prompt}``, with ``chat_tokens`` of its own,
    the last of which ends a turn.
    """

    name: str
    architecture: str
    model_type: str
    shifted: bool
    mask_token: str | None
    eos_token: str
    pad_token: str | None
    bos_token: str | None
    to_stock: Callable[[dict[str, Any]], dict[str, Any]]
    to_released: Callable[[Any], dict[str, Any]]
    fixed: dict[str, Any]
    defaults: dict[str, Any] = field(default_factory=dict)
    names: tuple[tuple[str, str], ...] = ()
    tokenizer_class: str | None = None
    lora_targets: tuple[str, ...] = LORA_TARGETS
    causal: bool = False
    float32_rotary: bool = False
    chat: str | None = None
    chat_tokens: tuple[str, ...] = ()
    releases: tuple[Release, ...] = ()

    @property
    def turn_end(self) -> str | None:
        """The token that ends a turn of a chat, and with it a text; None for a family without chats."""
        return self.chat_tokens[-1] if self.chat_tokens else None

    def release(self, repository: str) -> Release | None:
        """The release of that repository; None where the family knows none of it."""
        return next((release for release in self.releases if release.repository == repository), None)

    def stock_name(self, released: str) -> str:
        """The stock name of a released tensor; a name outside the map is returned as it is."""
        return _rename(released, self.names)

    def released_name(self, stock: str) -> str:
        """The released name of a stock tensor."""
        return _rename(stock, tuple((new, old) for old, new in self.names))


def stock_config(released: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a stock config whose released ``config.json`` already uses the stock names."""
    return {key: released[key] for key in STOCK_FIELDS}


def with_architecture(architecture: str) -> Callable[[Any], dict[str, Any]]:
    """A ``to_released`` for families whose ``config.json`` uses the stock names."""
    return lambda config: {"architectures": [architecture], **{key: getattr(config, key) for key in STOCK_FIELDS}}


def _rename(name: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        match = re.fullmatch(re.escape(old).replace(r"\{i\}", r"(\d+)") + r"(\..*)?", name)
        if match:
            *block, suffix = match.groups()
            return (new.replace("{i}", block[0]) if block else new) + (suffix or "")
    return name
