"""Dream (Dream-org/Dream-v0-Base-7B): Qwen2's tensors and computation, logits shifted by one."""

from __future__ import annotations

from entropy_valley.backbone.families.base import Family, stock_config, with_architecture

DREAM = Family(
    name="dream",
    architecture="Qwen2ForCausalLM",
    model_type="Dream",
    shifted=True,
    mask_token="<|mask|>",
    eos_token="<|endoftext|>",
    pad_token="<|endoftext|>",
    bos_token="<|beginoftext|>",
    to_stock=stock_config,
    to_released=with_architecture("DreamModel"),
    fixed={"hidden_act": "silu", "tie_word_embeddings": False, "use_sliding_window": False, "rope_scaling": None},
    tokenizer_class="Qwen2TokenizerFast",
)
