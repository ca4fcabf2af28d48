"""Settings of the demo's pre-training and of its toy COMET."""

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from entropy_valley.settings import Directions, RandomSeed, Refers, Section, Share
from entropy_valley.training.settings import EosPadding

SHAPE = {  # what the sizes of a model are in its stock config
    "vocabulary": "vocab_size", "width": "hidden_size", "ffn": "intermediate_size", "layers": "num_hidden_layers",
    "heads": "num_attention_heads", "kv_heads": "num_key_value_heads", "context": "max_position_embeddings",
    "head_dim": "head_dim",
}  # fmt: skip


def stock_config(**shape: int) -> dict[str, Any]:
    """The arguments of the stock config of a new model of these sizes, named as in :data:`SHAPE`."""
    return {SHAPE[name]: size for name, size in shape.items()} | {"rope_theta": 10_000.0, "rms_norm_eps": 1e-5}


class Pretraining(Section):
    """Pre-training of a tiny backbone on the train splits (demo only)."""

    seed: RandomSeed | None = Field(
        description="of weights, order and masks; null: that of the run, so that each run has a pre-training of its own"
    )
    steps: PositiveInt = Field(description="optimiser steps")
    batch: PositiveInt = Field(description="sequences per step")
    optimizer: Literal["muon"] | None = Field(
        None,
        description="of the layers' matrices: muon, in steps as large as AdamW's; null: AdamW, as of all else",
    )
    learning_rate: PositiveFloat = Field(description="at its highest")
    warmup: Share = Field(description="share of the steps; after it the rate falls as a half cosine")
    precision: Literal["bfloat16"] | None = Field(
        None, description="of matrix products; null: float32, as weights and all else"
    )
    weight_decay: float = Field(ge=0, description="of the optimizers")
    dropout: Share | None = Field(
        None, description="on the embeddings and on what each attention and feed-forward layer adds; null: none"
    )
    all_mask_share: Share = Field(description="share of all-mask canvases")
    eos_padding: EosPadding = Field(0, description="extra EOS targets after the first, as in instruction tuning")
    vocabulary: int = Field(
        ge=300,
        description="tokens of the tokenizer, which is trained as well; it has all 256 bytes and the special tokens",
    )
    width: PositiveInt = Field(description="of the residual stream")
    layers: PositiveInt = Field(description="transformer blocks")
    heads: PositiveInt = Field(description="of attention; `width` is a multiple of twice their number")
    kv_heads: PositiveInt = Field(description="key and value heads; `heads` is a multiple of them")
    ffn: PositiveInt = Field(description="width of the feed-forward layers")
    context: PositiveInt = Field(description="largest number of tokens of prompt and canvas together")
    directions: Annotated[Directions | None, Refers("directions")] = Field(
        None, description="corpora it reads; null: all of the matrix"
    )


class Estimator(Section):
    """Size and training of the toy COMET estimator."""

    seed: RandomSeed = Field(description="of weights, pairs and corruptions")
    steps: PositiveInt = Field(description="optimiser steps")
    width: PositiveInt = Field(96, description="of the encoder")
    layers: PositiveInt = Field(1, description="of the encoder")
    heads: PositiveInt = Field(4, description="of the encoder")
    vocabulary: PositiveInt = Field(4000, description="tokens of its tokenizer")
    context: PositiveInt = Field(256, description="tokens of a sentence with its two special ones")
    pairs: PositiveInt = Field(16, description="sentence pairs per step")
    corruptions: PositiveInt = Field(6, description="corrupted copies of each reference")
    learning_rate: PositiveFloat = Field(3e-3, description="of AdamW, at its highest")
    warmup: Annotated[int, Field(ge=0)] = Field(20, description="steps; after them the rate falls as a half cosine")
    minimum_spearman: float = Field(
        0.75, ge=-1, le=1, description="below it, on held-out drops, repeats or replacements, the estimator is refused"
    )
