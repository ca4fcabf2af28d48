"""Dream (Dream-org/Dream-v0-Base-7B): Qwen2's tensors and computation, logits shifted by one."""

from __future__ import annotations

from entropy_valley.backbone.families.base import Family, Release, stock_config, with_architecture

BASE = Release(
    repository="Dream-org/Dream-v0-Base-7B",
    licence="Apache-2.0",
    revision="6572adb5535263e4d1a337b56942ba48b6dee2a9",
    config={  # without the context: the rotation does not depend on it
        "vocab_size": 152064,
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "rope_theta": 1e6,
        "rms_norm_eps": 1e-6,
    },
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
    to_stock=stock_config,
    to_released=with_architecture("DreamModel"),
    fixed={
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_dropout": 0.0,
        "use_sliding_window": False,
        "use_mrope": False,
        "rope_scaling": None,
    },
    tokenizer_class="Qwen2TokenizerFast",
    releases=(BASE,),
)
