"""The settings of fine-tuning: the keys of `training`."""

import math
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from pydantic import Field, PositiveFloat, PositiveInt, Strict

from entropy_valley.errors import InputError
from entropy_valley.settings import Runtime, Section, Share

AUTO: Final = "auto"
SAVED = 16  # bytes of an adapter's parameter in a checkpoint: itself and its master copy, and the two moments of AdamW
Auto = Literal["auto"]
Targets = Literal["blocks", "by_name"]
Weight = Literal["1/t", "none"]
Normaliser = Literal["token", "sequence", "masked", "micro_batch"]
EosPadding = Annotated[int, Field(ge=0)] | Literal["batch"]
# The end of an adapted module's name in the stock class, as PEFT matches it.
Module = Annotated[str, Field(pattern=r"(([qkvo]|gate|up|down)_proj|lm_head)$")]
Betas = Annotated[tuple[Share, Share], Strict(False)]  # YAML knows lists alone


class Peft(Section):
    """Keys of PEFT's `LoraConfig`, by its names and with its defaults."""

    use_rslora: bool = Field(False, description="scale updates by alpha / √rank (rank-stabilised LoRA)")
    use_dora: bool = Field(False, description="also train the norm of each row of a weight (DoRA)")
    init_lora_weights: Literal[True, "gaussian", "orthogonal", "pissa", "olora"] = Field(
        True,
        description="how A and B start; true: A is drawn, B is zero; pissa and olora: as a part of the weight, which "
        "PEFT takes out of it, here and wherever the adapter is loaded",
    )
    rank_pattern: dict[Module, PositiveInt] = Field(
        {}, description="other ranks, by the end of a module's name in the stock class, such as `mlp.up_proj`"
    )
    alpha_pattern: dict[Module, PositiveInt] = Field({}, description="other alphas, as in `rank_pattern`")


class Lora(Peft):
    """The low-rank adapters."""

    rank: PositiveInt = Field(description="of each update")
    alpha: PositiveInt = Field(description="updates are scaled by alpha / rank")
    dropout: Share = Field(description="on the input of the adapters")
    targets: Targets = Field(
        "blocks",
        description="blocks: the seven matrices of each block; by_name: what the authors' bare names match in the "
        "released model, for LLaDA without the attention's output and with the LM head",
    )

    @property
    def peft(self) -> dict[str, Any]:
        """The keys of PEFT's `LoraConfig`."""
        own = {"peft_type": "LORA", "r": self.rank, "lora_alpha": self.alpha, "lora_dropout": self.dropout}
        return own | self.model_dump(include={*Peft.model_fields})


class Loss(Section):
    """Variants of the masked-diffusion loss."""

    AT_MOST_ONE = ("eos_padding", "padding_read")
    weight: Weight = Field("1/t", description="factor of a masked slot's cross-entropy")
    normaliser: Normaliser = Field(
        "token",
        description="the loss is divided by; token: the target tokens of the global batch; sequence: those of each "
        "sequence, then the mean over sequences; masked: the masked slots of the global batch; micro_batch: those of "
        "each `micro_batch`, then the mean over these",
    )
    micro_batch: PositiveInt = Field(
        4, description="drawn sequences of a batch that share a mean, a rate or a padding; passes are cut otherwise"
    )
    time: Literal["sequence", "minibatch"] = Field(
        "sequence", description="one masking rate t for each sequence, or for each `micro_batch`"
    )
    eps: float = Field(1e-3, gt=0, lt=1, description="the smallest masking rate: t ~ U(eps, 1)")
    antithetic: bool = Field(True, description="spread the rates t evenly over the batch; false: independent draws")
    at_least_one: bool = Field(True, description="mask a slot of a sequence whose draw masks none")
    eos_padding: EosPadding = Field(
        0, description="extra EOS targets after the first; batch: up to the longest sequence of the `micro_batch`"
    )
    padding_read: bool = Field(
        False,
        description="EOS up to the longest sequence of a `micro_batch`, read by the other tokens and not predicted",
    )


class AdapterTraining(Section):
    """What the adapters of one backbone are trained with instead of `training`; null: as there."""

    bos: bool | None = Field(None, description="whether its training prompts start with the BOS token")
    betas: Betas | None = Field(None, description="of AdamW")
    keep_every: PositiveInt | None = Field(None, description="`training.keep_every`")
    targets: Targets | None = Field(None, description="`training.lora.targets`")
    weight: Weight | None = Field(None, description="`training.loss.weight`")
    normaliser: Normaliser | None = Field(None, description="`training.loss.normaliser`")
    antithetic: bool | None = Field(None, description="`training.loss.antithetic`")
    at_least_one: bool | None = Field(None, description="`training.loss.at_least_one`")
    padding_read: bool | None = Field(None, description="`training.loss.padding_read`")


class DirectionTraining(Section):
    """What the adapters of a direction are trained with instead of `training`; null: as there."""

    AT_MOST_ONE = ("epochs", "max_steps")
    epochs: PositiveInt | None = Field(None, description="passes over the training pairs, and no `max_steps`")
    max_steps: PositiveInt | None = Field(None, description="optimiser steps, and no `epochs`")
    learning_rate: float | None = Field(None, gt=0, description="of AdamW, at its highest")
    warmup: Share | None = Field(None, description="share of the steps")


def warmup_steps(share: float, steps: int) -> int:
    """The steps of a warm-up over a ``share`` of all, rounded up.

    The share is the decimal that the config says: in binary floating point, 0.07 of 100 steps are more than 7.
    """
    return math.ceil(Fraction(str(share)) * steps)


class Training(Section):
    """LoRA-SFT."""

    ONE_OF = ("epochs", "max_steps")
    epochs: PositiveInt | None = Field(None, description="passes over the training pairs; null if max_steps is given")
    max_steps: PositiveInt | None = Field(None, description="optimiser steps, instead of epochs")
    limit: PositiveInt | None = Field(None, description="use only the first so many training pairs")
    processes: Runtime[PositiveInt] = Field(description="GPUs of one run, or CPU processes")
    global_batch: PositiveInt = Field(description="sequences per optimiser step")
    micro_tokens: Runtime[PositiveInt | Auto] = Field(
        description="most tokens of a device in one pass; a longer pair runs alone; auto: what its memory holds"
    )
    activation_checkpointing: Runtime[bool | Auto] = Field(
        AUTO,
        description="compute each layer again in the backward pass: less memory, the same numbers; auto: where else "
        "too few tokens fit into a pass",
    )
    compile_layers: bool = Field(
        False, description="compile the decoder layers: less memory traffic on a GPU, which needs a C compiler"
    )
    learning_rate: PositiveFloat = Field(description="of AdamW, at its highest")
    warmup: Share = Field(description="share of the steps; after it the rate falls as a half cosine")
    weight_decay: float = Field(ge=0, description="of AdamW")
    betas: Betas = Field(description="of AdamW")
    clip: PositiveFloat = Field(description="largest norm of the gradient")
    max_tokens: PositiveInt = Field(description="longest prompt + target; longer pairs are dropped and counted")
    too_long: Literal["drop", "cut"] = Field(
        "drop", description="cut: shorten the target of a longer pair, if at least five tokens of it are left"
    )
    keep_every: PositiveInt = Field(
        1, description="keep the adapter of the last step that is a multiple of this; rates fall as if all steps ran"
    )
    precision: Literal["float32", "bfloat16"] = Field(description="of the frozen weights and the passes")
    checkpoint_every: Runtime[PositiveInt] = Field(
        1000, description="steps between checkpoints that a killed run resumes from"
    )
    lora: Lora
    loss: Loss = Loss()

    def steps(self, batches: int) -> int:
        """The steps of a training whose epochs have so many ``batches``."""
        return self.max_steps or self.epochs * batches  # type: ignore[operator]  # ONE_OF: else there are epochs

    def kept(self, steps: int) -> int:
        """The last of ``steps`` steps that is a multiple of ``keep_every``; the training ends there."""
        if self.keep_every > steps:
            problem = f"the training has {steps} steps, so none is a multiple of {self.keep_every}"
            raise InputError("training.keep_every", problem, "Lower it, or train for more steps.")
        return steps // self.keep_every * self.keep_every
