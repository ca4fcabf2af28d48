"""DiffuLLaMA (diffusionfamily/diffullama): Llama-2's tensors and computation, logits shifted by one."""

from __future__ import annotations

from entropy_valley.backbone.families.base import Family, stock_config, with_architecture

DIFFULLAMA = Family(
    name="diffullama",
    architecture="LlamaForCausalLM",
    model_type="llama",
    shifted=True,
    mask_token="<mask>",
    eos_token="</s>",
    pad_token="</s>",
    bos_token="<s>",
    to_stock=stock_config,
    to_released=with_architecture("LlamaForCausalLM"),
    fixed={
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "rope_scaling": None,
    },
    tokenizer_class="LlamaTokenizerFast",
    mask_id=811,  # the released training script masks with this token of Llama-2's own vocabulary
)
