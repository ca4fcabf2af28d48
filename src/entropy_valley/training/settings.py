"""The settings of fine-tuning: the keys of `training`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from entropy_valley.settings import Section, Share

AUTO = "auto"
Auto = Literal["auto"]
EosPadding = Annotated[int, Field(ge=0)] | Literal["batch"]


class Lora(Section):
    """The low-rank adapters."""

    rank: PositiveInt = Field(description="of each update")
    alpha: PositiveInt = Field(description="updates are scaled by alpha / rank")
    dropout: Share = Field(description="on the input of the adapters")


class Loss(Section):
    """Variants of the masked-diffusion loss."""

    weight: Literal["1/t", "none"] = Field("1/t", description="factor of a masked slot's cross-entropy")
    normaliser: Literal["token", "sequence", "masked"] = Field(
        "token",
        description="the loss is divided by; token: the target tokens of the global batch; sequence: those of each "
        "sequence, then the mean over sequences; masked: the masked slots of the global batch",
    )
    time: Literal["sequence", "minibatch"] = Field(
        "sequence", description="one masking rate t for each sequence, or for each micro-batch"
    )
    eps: float = Field(1e-3, gt=0, lt=1, description="the smallest masking rate: t ~ U(eps, 1)")
    eos_padding: EosPadding = Field(
        0, description="extra EOS targets after the first; batch: up to the longest sequence of the micro-batch"
    )


class Training(Section):
    """LoRA-SFT."""

    epochs: PositiveInt | None = Field(None, description="passes over the training pairs; null if max_steps is given")
    max_steps: PositiveInt | None = Field(None, description="optimiser steps, instead of epochs")
    limit: PositiveInt | None = Field(None, description="use only the first so many training pairs")
    processes: PositiveInt = Field(description="GPUs of one run, or CPU processes")
    global_batch: PositiveInt = Field(description="sequences per optimiser step")
    micro_tokens: PositiveInt | Auto = Field(
        description="most tokens of a device in one pass; a longer pair runs alone; auto: what its memory holds"
    )
    activation_checkpointing: bool | Auto = Field(
        AUTO,
        description="compute each layer again in the backward pass: less memory, the same numbers; auto: where else "
        "too few tokens fit into a pass",
    )
    learning_rate: PositiveFloat = Field(description="of AdamW, at its highest")
    warmup: Share = Field(description="share of the steps; after it the rate falls as a half cosine")
    weight_decay: float = Field(ge=0, description="of AdamW")
    betas: tuple[Share, Share] = Field(description="of AdamW")
    clip: PositiveFloat = Field(description="largest norm of the gradient")
    max_tokens: PositiveInt = Field(description="longest prompt + target; longer pairs are dropped and counted")
    precision: Literal["float32", "bfloat16"] = Field(description="of the frozen weights and the passes")
    checkpoint_every: PositiveInt = Field(200, description="steps between checkpoints that a killed run resumes from")
    lora: Lora
    loss: Loss = Loss()

    @property
    def passes_matter(self) -> bool:
        """Whether the loss depends on how a batch is cut into passes, and not only its rounding."""
        return self.loss.time == "minibatch" or self.loss.eos_padding == "batch"

    @model_validator(mode="after")
    def _consistent(self) -> Training:
        if (self.epochs is None) == (self.max_steps is None):
            raise ValueError("give either `epochs` or `max_steps`")
        return self
