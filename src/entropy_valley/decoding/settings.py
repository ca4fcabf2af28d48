"""The settings of decoding: the keys of `decoding`."""

from typing import Literal

from pydantic import Field, PositiveInt

from entropy_valley.settings import Runtime, Section

Schedule = Literal["llada", "floors"]
MaskToken = Literal["never", "may_be_revealed"]


class PromptCache(Section):
    """Passes that take the keys and values of the prompt from an earlier one: approximate."""

    refresh: PositiveInt | Literal["never"] = Field(
        description="compute the prompt in every so many passes over a sentence, from the first on; 1: in all, as "
        "without this key; never: in the first alone"
    )


class Decoding(Section):
    """Denoising."""

    precision: Literal["float32", "bfloat16", "nf4"] = Field(
        description="of the model; softmax and entropy are in float32. nf4: the layers' weights in 4 bits, else "
        "bfloat16; it needs bitsandbytes"
    )
    head_precision: Literal["float32", "backbone"] = Field(
        "float32", description="of the LM head's logits: float32, or rounded to `precision`. With float32 both are one"
    )
    batch_invariant: bool | Literal["auto"] = Field(
        "auto", description="pad passes, so that no canvas depends on those beside it; auto: on GPUs. A CPU needs none"
    )
    compile_layers: bool = Field(
        False,
        description="compile the decoder layers of padded passes: fewer kernels, and other last bits. Without padding "
        "(`batch_invariant`) it changes nothing",
    )
    schedule: Schedule = Field(
        "llada",
        description="slots revealed at a step: ⌊L/T⌋, and one more in the first L mod T steps; floors: "
        "⌊L(t+1)/T⌋ - ⌊Lt/T⌋ at step t from 0, as in the authors' code",
    )
    mask_token: MaskToken = Field(
        "never", description="whether the mask token is in the distributions of slots; in a text it is left out"
    )
    exact_products: bool = Field(
        True, description="ratio times |x| by the ratio's decimals; false: in binary floating point, for all methods"
    )
    merge_adapter: bool = Field(True, description="false: adapters run beside the weights, in float32, as in training")
    prompt_cache: PromptCache | None = Field(
        None,
        description="approximate: probes and denoising steps take the prompt's keys and values from earlier ones of "
        "the sentence; null: exact. For checkpoints whose prompt attends to the canvas",
    )
    shards: Runtime[PositiveInt | Literal["auto"]] = Field(
        "auto",
        description="jobs, each with a model of its own, that share the sentences of a set; auto: on GPUs so many that "
        "each is expected to take about two hours",
    )

    @property
    def refresh(self) -> int | Literal["never"]:
        """Of `prompt_cache`; 1 of an exact decoder."""
        return self.prompt_cache.refresh if self.prompt_cache else 1


class OwnDecoding(Section):
    """What one backbone is decoded with instead of `decoding`; null: as there."""

    schedule: Schedule | None = Field(None, description="`decoding.schedule`")
    mask_token: MaskToken | None = Field(None, description="`decoding.mask_token`")
    exact_products: bool | None = Field(None, description="`decoding.exact_products`")
    prompt_cache: PromptCache | None = Field(None, description="`decoding.prompt_cache`")
