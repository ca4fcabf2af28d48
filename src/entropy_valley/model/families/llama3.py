"""LLaMA-3 (meta-llama/Meta-Llama-3-8B): the autoregressive reference, with Llama's own tensors and computation."""

from __future__ import annotations

from entropy_valley.model.families.base import LLAMA_FIXED, Family, Release, stock_config, with_architecture

CONFIG = {
    "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192, "rope_theta": 5e5,
    "rms_norm_eps": 1e-5,
}  # fmt: skip

LLAMA3 = Family(
    name="llama3",
    architecture="LlamaForCausalLM",
    model_type="llama",
    shifted=True,
    bos=True,
    causal=True,
    mask_token=None,
    eos_token="<|end_of_text|>",
    pad_token=None,
    bos_token="<|begin_of_text|>",
    to_stock=stock_config,
    to_released=with_architecture("LlamaForCausalLM"),
    fixed=LLAMA_FIXED,
    releases=(
        Release(
            repository="meta-llama/Meta-Llama-3-8B",
            licence="Meta Llama 3 Community License",
            gated=True,
            revision="8cde5ca8380496c9a6cc7ef3a8b46a0372a1d920",
            config=CONFIG,
            ids={"mask": None, "eos": 128001, "pad": None, "bos": 128000},
        ),
    ),
)
