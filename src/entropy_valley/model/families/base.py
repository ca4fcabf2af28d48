"""A family of checkpoints, as data."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
STOCK_FIELDS = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "max_position_embeddings", "rope_theta", "rms_norm_eps", "tie_word_embeddings",
)  # fmt: skip
# What stock Llama assumes, under the stock names. A checkpoint with another value computes another function.
LLAMA_FIXED = {
    "hidden_act": "silu", "tie_word_embeddings": False, "attention_bias": False, "attention_dropout": 0.0,
    "mlp_bias": False, "rope_scaling": None,
}  # fmt: skip


@dataclass(frozen=True)
class Release:
    """A checkpoint as its authors published it on the Hugging Face hub.

    ``config`` holds the fields of its ``config.json`` that the computation depends on, under the stock names. ``ids``
    are the ids of its ``mask``, ``eos``, ``pad`` and ``bos`` token (None: it has none, or does not use it); they hold
    for any checkpoint with a vocabulary of this size. ``revision`` is the pinned commit; None: the newest is resolved
    once and written to the results. ``gated``: users must accept its licence first.
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

    ``architecture`` is a stock class with Llama's structure: rotary embedding ``model.rotary_emb``, blocks
    ``model.layers`` of ``self_attn`` and ``mlp``, and an ``lm_head`` that is not tied to the embeddings.

    ``names`` pairs released with stock tensor names, with ``{i}`` for the block; empty: the names are the same.
    ``to_stock`` turns the released ``config.json`` into keyword arguments of the stock config class. ``to_released``
    turns a stock config into the released one. ``fixed`` holds the fields for which another value would mean another
    function. ``defaults`` holds what the authors' class assumes for a field that ``config.json`` leaves out, if that
    differs from ``fixed``.

    ``shifted`` families predict the next position: the logits of slot i are read from row i - 1. A ``causal`` family is
    autoregressive: it has no mask token, attends only to the past and predicts the next position. ``float32_rotary``
    rotates queries and keys in float32 whatever the model's dtype is.

    ``bos``: prompts begin with the BOS token, unless the params of a model say otherwise.

    The special tokens are literal strings of the released tokenizer (None: it has none, or does not use it).
    ``tokenizer_class`` reads the files of a release without ``tokenizer.json``. ``chat`` is the family's chat template,
    with ``{prompt}`` for the prompt; ``chat_tokens`` are its special tokens, of which ``turn_end`` ends a turn
    and so a text.

    ``lora_targets`` are the adapted matrices of a block, under their stock names. ``lora_names`` are the bare names of
    released modules by which the paper's authors adapt: every module of that name, in a block or not.
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
    lora_names: tuple[str, ...] = LORA_TARGETS
    causal: bool = False
    float32_rotary: bool = False
    bos: bool = False
    chat: str | None = None
    chat_tokens: tuple[str, ...] = ()
    turn_end: str | None = None
    releases: tuple[Release, ...] = ()

    def release(self, repository: str) -> Release | None:
        """The release of that repository; None if the family does not list it."""
        return next((release for release in self.releases if release.repository == repository), None)

    def stock_name(self, released: str) -> str:
        """The stock name of a released tensor; other names are returned unchanged."""
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
