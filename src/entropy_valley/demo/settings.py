"""How the demo's tiny backbones and its toy COMET are trained."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from entropy_valley.settings import Directions, Section, Share


class Pretraining(Section):
    """A tiny backbone made from nothing on the train splits (demo only)."""

    seed: int = Field(description="of weights, order and masks")
    steps: PositiveInt = Field(description="optimiser steps")
    batch: PositiveInt = Field(description="sequences per step")
    learning_rate: PositiveFloat = Field(description="of AdamW, at its highest")
    warmup: Share = Field(description="share of the steps; then the rate falls as a half cosine")
    weight_decay: float = Field(ge=0, description="of AdamW")
    all_mask_share: Share = Field(description="share of canvases that are wholly masked")
    eos_padding: Annotated[int, Field(ge=0)] | Literal["batch"] = Field(
        0, description="EOS targets behind the first, as instruction tuning has them"
    )
    vocabulary: PositiveInt = Field(description="tokens of the tokenizer, which is trained too")
    width: PositiveInt = Field(description="of the residual stream")
    layers: PositiveInt = Field(description="transformer blocks")
    heads: PositiveInt = Field(description="of attention")
    kv_heads: PositiveInt = Field(description="key and value heads")
    ffn: PositiveInt = Field(description="width of the feed-forward layers")
    context: PositiveInt = Field(description="most tokens of prompt and canvas")
    directions: Directions | None = Field(None, description="corpora it reads; null: all of the matrix")


class Estimator(Section):
    """Size and training of the embedded estimator.

    A step sees ``pairs`` sentence pairs, each reference with ``corruptions`` spoiled copies; the learning rate warms
    up and falls as a half cosine. Below ``minimum_spearman`` on held-out drops, repeats or replacements the estimator
    is refused.
    """

    seed: int = Field(description="of weights, pairs and corruptions")
    steps: PositiveInt = Field(description="optimiser steps")
    width: PositiveInt = Field(96, description="of the encoder")
    layers: PositiveInt = Field(1, description="of the encoder")
    heads: PositiveInt = Field(4, description="of the encoder")
    vocabulary: PositiveInt = Field(4000, description="tokens of its tokenizer")
    context: PositiveInt = Field(256, description="tokens of a sentence with its two special ones")
    pairs: PositiveInt = Field(16, description="sentence pairs per step")
    corruptions: PositiveInt = Field(6, description="spoiled copies of each reference")
    learning_rate: PositiveFloat = Field(3e-3, description="of AdamW, at its highest")
    warmup: Annotated[int, Field(ge=0)] = Field(20, description="steps")
    minimum_spearman: float = Field(
        0.75, ge=-1, le=1, description="below it, on held-out drops, repeats or replacements, the estimator is refused"
    )
