"""The families of checkpoints, as data: what a family is, and then ours, one after the other.

A new one is a section here and a name in :data:`FAMILIES`, or a user's own ``module:NAME``.
"""

import dataclasses
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from entropy_valley import plugins
from entropy_valley.errors import InputError, brief
from entropy_valley.settings import Foreign, JsonObject

Size = Annotated[int, Field(gt=0, le=2**24)]
# The adapted matrices of a block, under their stock names.
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
# The stock classes that :mod:`.decoder` computes, and what tells them apart.
STOCK_CLASSES: dict[str, dict[str, bool]] = {
    "LlamaForCausalLM": {},
    "Qwen2ForCausalLM": {"qkv_bias": True},
    "Qwen3ForCausalLM": {"qk_norm": True},
}
# All that the decoder computes of these fields of `config.json`, under their stock names. With another value, a
# checkpoint of any family computes another function.
COMPUTED = {
    "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "attention_dropout": 0.0, "rope_scaling": None,
    "partial_rotary_factor": 1.0, "use_sliding_window": False, "use_mrope": False,
}  # fmt: skip


class Config(Foreign, extra="forbid"):
    """The shape of a decoder, under transformers' names, and what its family adds: biases of q, k and v, norms of the
    heads of q and k, attention to the past alone, and rotation in float32.

    ``head_dim`` is the width of a head; None: ``hidden_size`` over the number of heads. With ``tie_word_embeddings``
    the LM head has the weights of the embeddings.
    """

    vocab_size: Size
    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Annotated[int, Field(gt=0, le=1000)]
    num_attention_heads: Size
    num_key_value_heads: Size | None = None
    max_position_embeddings: Annotated[int, Field(gt=0, le=2**20)]
    rope_theta: Annotated[float, Field(ge=1)] = 10_000.0
    rms_norm_eps: Annotated[float, Field(gt=0, le=1)] = 1e-6
    tie_word_embeddings: bool = False
    head_dim: Size | None = None
    qkv_bias: bool = False
    qk_norm: bool = False
    causal: bool = False
    float32_rotary: bool = False
    to_dict: ClassVar = Foreign.model_dump  # as PEFT calls it, which asks whether the head is tied

    @property
    def head_width(self) -> int:
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def key_heads(self) -> int:
        """Heads of k and v: those of q unless the checkpoint says otherwise."""
        return self.num_key_value_heads or self.num_attention_heads

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        if (width := self.head_dim or self.hidden_size / self.num_attention_heads) % 2:
            raise ValueError(f"the width of a head, {width:g}, is not an even number")
        if self.num_attention_heads % self.key_heads:
            raise ValueError(f"num_key_value_heads {self.key_heads} does not divide {self.num_attention_heads} heads")
        return self


STOCK_FIELDS = tuple(Config.model_fields)[:11]  # those of the stock classes


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

    ``architecture`` is that class, one of :data:`STOCK_CLASSES`; empty: the one that ``config.json`` names, which runs
    itself, see :data:`STOCK`.

    ``names`` pairs released with stock tensor names, with ``{i}`` for the block; empty: the names are the same.
    ``fields`` has the released name of each field of ``config.json`` by its stock name, ``written`` further fields of a
    released one. ``fixed`` holds the fields for which another value would mean another function, beside
    :data:`COMPUTED`. ``defaults`` holds what the authors' class assumes for a field that ``config.json`` leaves out, if
    that differs from ``fixed``.

    ``shifted`` families predict the next position: the logits of slot i are read from row i - 1. A ``causal`` family is
    autoregressive: it has no mask token, attends only to the past and predicts the next position. ``float32_rotary``
    rotates queries and keys in float32 whatever the model's dtype is.

    ``bos``: prompts begin with the BOS token, unless the params of a model say otherwise.

    The special tokens are literal strings of the released tokenizer (None: it has none, or does not use it; the EOS is
    then the one that the tokenizer declares).
    ``tokenizer_class`` reads the files of a release without ``tokenizer.json``. ``chat`` is the family's chat template,
    with ``{prompt}`` for the prompt; ``chat_tokens`` are its special tokens. ``turn_end`` ends a turn, and so a text,
    where the tokenizer has that token.

    ``lora_names`` are the bare names of released modules by which the paper's authors adapt: every module of that name,
    in a block or not.
    """

    name: str
    architecture: str
    model_type: str
    shifted: bool = False
    mask_token: str | None = None
    eos_token: str | None = None
    pad_token: str | None = None
    bos_token: str | None = None
    written: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=lambda: dict(zip(STOCK_FIELDS, STOCK_FIELDS, strict=True)))
    defaults: dict[str, Any] = field(default_factory=dict)
    names: tuple[tuple[str, str], ...] = ()
    tokenizer_class: str | None = None
    lora_names: tuple[str, ...] = LORA_TARGETS
    causal: bool = False
    float32_rotary: bool = False
    bos: bool = False
    chat: str | None = None
    chat_tokens: tuple[str, ...] = ()
    turn_end: str | None = None
    releases: tuple[Release, ...] = ()

    @property
    def is_stock(self) -> bool:
        return not self.architecture

    def release(self, repository: str) -> Release | None:
        """The release of that repository; None if the family does not list it."""
        return next((release for release in self.releases if release.repository == repository), None)

    def in_chat(self, prompt: str) -> str:
        """A prompt as a user's message in the chat template; raises InputError where there is none."""
        if self.chat is None:
            raise InputError("chat", f"the family {self.name} has no chat template", "Leave it out.")
        return self.chat.replace("{prompt}", prompt)

    def turn_end_id(self, tokenizer: Any) -> int | None:
        """The id of the token that ends a turn of the family's chats; None for a family without chats."""
        return tokenizer.get_vocab().get(self.turn_end)

    def stock_name(self, released: str) -> str:
        """The stock name of a released tensor; other names are returned unchanged."""
        return _rename(released, self.names)

    def released_name(self, stock: str) -> str:
        """The released name of a stock tensor."""
        return _rename(stock, tuple((new, old) for old, new in self.names))

    def to_stock(self, released: JsonObject) -> dict[str, Any]:
        """The keyword arguments of a stock config class, from a released ``config.json``: the width of a head may be
        left out there."""
        fields = self.fields.items()
        return {stock: released[name] for stock, name in fields if stock != "head_dim" or name in released}

    def to_released(self, config: Config) -> JsonObject:
        """The ``config.json`` of a released checkpoint of that shape."""
        fields = {name: getattr(config, stock) for stock, name in self.fields.items()}
        if "head_dim" in self.defaults:  # the authors' class assumes another one where it is left out
            fields["head_dim"] = config.head_width
        elif config.head_dim is None:
            fields.pop(self.fields.get("head_dim", ""), None)
        return {**self.written, "vocab_size": config.vocab_size, **fields}


def _rename(name: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        match = re.fullmatch(re.escape(old).replace(r"\{i\}", r"(\d+)") + r"(\..*)?", name)
        if match:
            *block, suffix = match.groups()
            return (new.replace("{i}", block[0]) if block else new) + (suffix or "")
    return name


# --- LLaDA (GSAI-ML/LLaDA-8B-Base): Llama's computation, with rotation in float32, and OLMo's tensor names; and those
# that are tuned on chats, LLaDA-8B-Instruct and LLaDA-1.5, whose tokenizer has more tokens.

LLADA_NAMES = (
    ("model.transformer.wte", "model.embed_tokens"),
    ("model.transformer.ln_f", "model.norm"),
    ("model.transformer.ff_out", "lm_head"),
    ("model.transformer.blocks.{i}.attn_norm", "model.layers.{i}.input_layernorm"),
    ("model.transformer.blocks.{i}.ff_norm", "model.layers.{i}.post_attention_layernorm"),
    ("model.transformer.blocks.{i}.q_proj", "model.layers.{i}.self_attn.q_proj"),
    ("model.transformer.blocks.{i}.k_proj", "model.layers.{i}.self_attn.k_proj"),
    ("model.transformer.blocks.{i}.v_proj", "model.layers.{i}.self_attn.v_proj"),
    ("model.transformer.blocks.{i}.attn_out", "model.layers.{i}.self_attn.o_proj"),
    ("model.transformer.blocks.{i}.ff_proj", "model.layers.{i}.mlp.gate_proj"),
    ("model.transformer.blocks.{i}.up_proj", "model.layers.{i}.mlp.up_proj"),
    ("model.transformer.blocks.{i}.ff_out", "model.layers.{i}.mlp.down_proj"),
)

LLADA_FIELDS = {  # stock: released
    "vocab_size": "embedding_size",
    "hidden_size": "d_model",
    "intermediate_size": "mlp_hidden_size",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "max_position_embeddings": "max_sequence_length",
    "rope_theta": "rope_theta",
    "rms_norm_eps": "rms_norm_eps",
}

LLADA_FIXED = {
    "activation_type": "silu", "alibi": False, "attention_dropout": 0.0, "attention_layer_norm": False,
    "block_type": "llama", "embedding_dropout": 0.0, "include_bias": False, "include_qkv_bias": False,
    "input_emb_norm": False, "layer_norm_type": "rms", "residual_dropout": 0.0, "rope": True,
    "rope_full_precision": True, "scale_logits": False, "weight_tying": False,
}  # fmt: skip

LLADA_CONFIG = {
    "vocab_size": 126464, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096, "rope_theta": 5e5,
    "rms_norm_eps": 1e-5,
}  # fmt: skip

LLADA_BASE = Release(
    repository="GSAI-ML/LLaDA-8B-Base",
    licence="MIT",
    revision="0f2787f2d87eac5eed8a087d5ecd24277e6255b2",
    config=LLADA_CONFIG,
    ids={"mask": 126336, "eos": 126081, "pad": 126081, "bos": 126080},
)

LLADA = Family(
    name="llada",
    architecture="LlamaForCausalLM",
    model_type="llada",
    mask_token="<|mdm_mask|>",
    eos_token="<|endoftext|>",
    pad_token="<|endoftext|>",
    bos_token="<|startoftext|>",
    written={"architectures": ["LLaDAModelLM"], **LLADA_FIXED},
    fixed=LLADA_FIXED,
    fields=LLADA_FIELDS,
    names=LLADA_NAMES,
    lora_names=("q_proj", "k_proj", "v_proj", "o_proj", "ff_proj", "up_proj", "ff_out"),
    float32_rotary=True,
    turn_end="<|eot_id|>",
    releases=(LLADA_BASE,),
)

LLADA_INSTRUCT = dataclasses.replace(
    LLADA,
    name="llada_instruct",
    chat=(
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\n{prompt}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    chat_tokens=("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    releases=tuple(
        dataclasses.replace(LLADA_BASE, repository=f"GSAI-ML/{name}", revision=None)
        for name in ("LLaDA-8B-Instruct", "LLaDA-1.5")
    ),
)


# --- iLLaDA (GSAI-ML/iLLaDA-8B-Base, arXiv:2606.25331): Llama's tensors and computation with a tied head. No file of it
# declares the mask, entry 5 of the vocabulary; the EOS is what its tokenizer declares.

ILLADA_RELEASE = Release(
    repository="GSAI-ML/iLLaDA-8B-Base",
    licence="Apache-2.0",
    config={
        "vocab_size": 155136, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    },
    ids={"mask": 5, "eos": 2, "pad": None, "bos": None},
)  # fmt: skip

ILLADA = Family(
    name="illada",
    architecture="LlamaForCausalLM",
    model_type="illada",
    mask_token="<[MASK]>",
    written={"architectures": ["ILLaDAForCausalLM"]},
    fixed={"layer_norm_eps": None},
    releases=(ILLADA_RELEASE,),
)


# --- Dream (Dream-org/Dream-v0-Base-7B): Qwen2's tensors and computation, logits shifted by one; and Dream-Instruct.
#
# Dream-Instruct (Dream-org/Dream-v0-Instruct-7B) is Dream tuned on chats. Its ``chat`` is Qwen2.5's template, which its
# tokenizer keeps, for one user message, with the default system message. A turn, and so a translation, ends with
# ``<|im_end|>``; the EOS is still ``<|endoftext|>`` (id 151643), as in its ``generation_config.json``.

DREAM_CONFIG = {  # without the context: the rotation does not depend on it
    "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "rope_theta": 1e6, "rms_norm_eps": 1e-6,
}  # fmt: skip

DREAM_BASE = Release(
    repository="Dream-org/Dream-v0-Base-7B",
    licence="Apache-2.0",
    revision="6572adb5535263e4d1a337b56942ba48b6dee2a9",
    config=DREAM_CONFIG,
    ids={"mask": 151666, "eos": 151643, "pad": 151643, "bos": 151665},
)

DREAM = Family(
    name="dream",
    architecture="Qwen2ForCausalLM",
    model_type="Dream",
    shifted=True,
    mask_token="<|mask|>",
    eos_token="<|endoftext|>",
    pad_token="<|endoftext|>",
    bos_token="<|beginoftext|>",
    written={"architectures": ["DreamModel"]},
    tokenizer_class="Qwen2TokenizerFast",
    releases=(DREAM_BASE,),
)

DREAM_INSTRUCT = dataclasses.replace(
    DREAM,
    name="dream_instruct",
    chat=(
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\n{prompt}<|im_end|>\n"
        "<|im_start|>assistant\n"
    ),
    chat_tokens=("<|im_start|>", "<|im_end|>"),
    turn_end="<|im_end|>",
    releases=(
        dataclasses.replace(
            DREAM_BASE, repository="Dream-org/Dream-v0-Instruct-7B", revision="05334cb9faaf763692dcf9d8737c642be2b2a6ae"
        ),
    ),
)


# --- DiffuLLaMA (diffusionfamily/diffullama): Llama-2's tensors and computation, logits shifted by one.
#
# Llama-2 has no mask token. The authors use entry 811 of its vocabulary, ``ти``: it is the default of their training
# script, and the released tokenizer declares it (github.com/HKUNLP/DiffuLLaMA; issue 11 gives the reason). Here too,
# the declared mask token is used, and its id must be 811. The tokenizer also declares a pad token ``¨``, which is not
# used.

DIFFULLAMA = Family(
    name="diffullama",
    architecture="LlamaForCausalLM",
    model_type="llama",
    shifted=True,
    bos=True,
    mask_token="ти",
    eos_token="</s>",
    bos_token="<s>",
    written={"architectures": ["LlamaForCausalLM"]},
    releases=(
        Release(
            repository="diffusionfamily/diffullama",
            licence="Apache-2.0; of its base model: Llama 2 Community License",
            revision="b20cd6d3e7b2c1016203bcd986e886fe885b6061",  # the weights of 01ea216, with the licence on the card
            config=LLADA_CONFIG | {"vocab_size": 32000, "intermediate_size": 11008, "rope_theta": 1e4},
            ids={"mask": 811, "eos": 2, "pad": None, "bos": 1},
        ),
    ),
)


# --- LLaMA-3 (meta-llama/Meta-Llama-3-8B): the autoregressive reference, with Llama's own tensors and computation.

LLAMA3 = Family(
    name="llama3",
    architecture="LlamaForCausalLM",
    model_type="llama",
    shifted=True,
    bos=True,
    causal=True,
    eos_token="<|end_of_text|>",
    bos_token="<|begin_of_text|>",
    written={"architectures": ["LlamaForCausalLM"]},
    releases=(
        Release(
            repository="meta-llama/Meta-Llama-3-8B",
            licence="Meta Llama 3 Community License",
            gated=True,
            revision="8cde5ca8380496c9a6cc7ef3a8b46a0372a1d920",
            config=LLADA_CONFIG
            | {
                "vocab_size": 128256,
                "intermediate_size": 14336,
                "num_key_value_heads": 8,
                "max_position_embeddings": 8192,
            },
            ids={"mask": None, "eos": 128001, "pad": None, "bos": 128000},
        ),
    ),
)


# --- A2D (dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1; github.com/ZHZisZZ/dllm): Qwen3 or Qwen2 whose attention sees all
# rows, trained with masks. They keep the tensors and config of their base; the mask token is added to the tokenizer.
#
# ``chat`` is the base's template for one user message, with its default system message; Qwen3's is without thinking, as
# the authors recommend. A turn ends with the EOS.

QWEN3_CONFIG = {
    "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 40960, "rope_theta": 1e6,
    "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "head_dim": 128,
}  # fmt: skip

A2D_QWEN3 = Family(
    name="a2d_qwen3",
    architecture="Qwen3ForCausalLM",
    model_type="a2d-qwen3",
    mask_token="<|mask|>",
    eos_token="<|im_end|>",
    pad_token="<|endoftext|>",
    written={"architectures": ["A2DQwen3LMHeadModel"]},
    defaults={"head_dim": 128},
    tokenizer_class="Qwen2TokenizerFast",
    chat="<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    chat_tokens=("<|im_start|>",),
    releases=(
        Release(
            repository="dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1",
            licence="Apache-2.0",
            config=QWEN3_CONFIG,
            ids={"mask": 151669, "eos": 151645, "pad": 151643, "bos": None},
        ),
    ),
)

QWEN2_CONFIG = {
    "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
    "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 32768, "rope_theta": 1e6,
    "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
}  # fmt: skip

A2D_QWEN2 = dataclasses.replace(
    A2D_QWEN3,
    name="a2d_qwen2",
    architecture="Qwen2ForCausalLM",
    model_type="a2d-qwen2",
    written={"architectures": ["A2DQwen2LMHeadModel"]},
    defaults={},
    chat=(
        "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
    ),
    releases=(
        Release(
            repository="dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1",
            licence="Apache-2.0",
            config=QWEN2_CONFIG,
            ids={"mask": 151665, "eos": 151645, "pad": 151643, "bos": None},
        ),
    ),
)


# --- EuroBERT (EuroBERT/EuroBERT-210m): Llama's tensors and computation as a masked language model of 15 languages. It
# has seen half-masked texts in pre-training; fine-tuning teaches it fully masked canvases.

EUROBERT_CONFIG = {
    "vocab_size": 128256, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "num_key_value_heads": 12, "max_position_embeddings": 8192, "rope_theta": 250_000,
    "rms_norm_eps": 1e-5,
}  # fmt: skip

EUROBERT = Family(
    name="eurobert",
    architecture="LlamaForCausalLM",
    model_type="eurobert",
    bos=True,
    mask_token="<|mask|>",
    eos_token="<|end_of_text|>",
    pad_token="<|end_of_text|>",
    bos_token="<|begin_of_text|>",
    written={"architectures": ["EuroBertForMaskedLM"]},
    fixed={"hidden_dropout": 0.0},
    releases=(
        Release(
            repository="EuroBERT/EuroBERT-210m",
            licence="Apache-2.0",
            config=EUROBERT_CONFIG,
            ids={"mask": 128002, "eos": 128001, "pad": 128001, "bos": 128000},
        ),
    ),
)


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        LLADA,
        LLADA_INSTRUCT,
        ILLADA,
        DREAM,
        DREAM_INSTRUCT,
        DIFFULLAMA,
        A2D_QWEN3,
        A2D_QWEN2,
        EUROBERT,
        LLAMA3,
    )
}


# --- Any class of transformers, for masked tokens or next ones: :mod:`.wrapped` runs it, slower, and it is not trained.
# The special tokens are those that its tokenizer declares.

STOCK = Family(name="stock", architecture="", model_type="")

NEW_FAMILY = (
    "docs/extending.md#a-new-family says how to describe another, and the family `stock` runs any class of transformers"
)


def find_family(name: str, file: Path | None = None) -> Family:
    """The family of that name; a user's own is named ``module:NAME``. Raises InputError if there is none. A ``file``
    that names it may be another's: it runs no code that this process has not imported before."""
    if file and ":" in name and name.partition(":")[0] not in sys.modules:
        remedy = "If you trust it, name it yourself: by --family, or in the config; or import its module first."
        raise InputError(file, f"its family is code of someone's own, {brief(name)}", remedy)
    family = plugins.find("family", {**FAMILIES, STOCK.name: STOCK}, name)
    if not isinstance(family, Family):
        raise InputError(
            f"family {name!r}", "is not a Family", "Name an instance of entropy_valley.model.families.Family."
        )
    if not family.is_stock and family.architecture not in STOCK_CLASSES:
        problem = f"its architecture is {brief(family.architecture)}"
        raise InputError(f"family {name!r}", problem, f"The decoder computes {', '.join(STOCK_CLASSES)}.")
    return family if family.name == name else dataclasses.replace(family, name=name)
