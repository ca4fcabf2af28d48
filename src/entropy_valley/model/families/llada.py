"""LLaDA (GSAI-ML/LLaDA-8B-Base): Llama's computation, with rotation in float32, and OLMo's tensor names."""

from __future__ import annotations

from typing import Any

from entropy_valley.model.families.base import Family, Release

NAMES = (
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

FIELDS = {  # stock: released
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

# What the stock class assumes. A checkpoint with another value computes another function.
FIXED = {
    "activation_type": "silu", "alibi": False, "attention_dropout": 0.0, "attention_layer_norm": False,
    "block_type": "llama", "embedding_dropout": 0.0, "include_bias": False, "include_qkv_bias": False,
    "input_emb_norm": False, "layer_norm_type": "rms", "residual_dropout": 0.0, "rope": True,
    "rope_full_precision": True, "scale_logits": False, "weight_tying": False,
}  # fmt: skip

# What the authors' configuration_llada.py (OLMo's) assumes for a field that config.json leaves out.
DEFAULTS = {
    "activation_type": "swiglu", "attention_dropout": 0.1, "block_type": "sequential", "embedding_dropout": 0.1,
    "layer_norm_type": "default", "residual_dropout": 0.1, "rope": False, "weight_tying": True,
}  # fmt: skip


def to_stock(released: dict[str, Any]) -> dict[str, Any]:
    return {stock: released[field] for stock, field in FIELDS.items()}


def to_released(config: Any) -> dict[str, Any]:
    fields = {field: getattr(config, stock) for stock, field in FIELDS.items()}
    return {"architectures": ["LLaDAModelLM"], "vocab_size": config.vocab_size, **fields, **FIXED}


CONFIG = {
    "vocab_size": 126464, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096, "rope_theta": 5e5,
    "rms_norm_eps": 1e-5,
}  # fmt: skip

LLADA = Family(
    name="llada",
    architecture="LlamaForCausalLM",
    model_type="llada",
    shifted=False,
    mask_token="<|mdm_mask|>",
    eos_token="<|endoftext|>",
    pad_token="<|endoftext|>",
    bos_token="<|startoftext|>",
    to_stock=to_stock,
    to_released=to_released,
    fixed=FIXED,
    defaults=DEFAULTS,
    names=NAMES,
    lora_names=("q_proj", "k_proj", "v_proj", "o_proj", "ff_proj", "up_proj", "ff_out"),
    float32_rotary=True,
    releases=(
        Release(
            repository="GSAI-ML/LLaDA-8B-Base",
            licence="MIT",
            revision="0f2787f2d87eac5eed8a087d5ecd24277e6255b2",
            config=CONFIG,
            ids={"mask": 126336, "eos": 126081, "pad": 126081, "bos": 126080},
        ),
    ),
)
