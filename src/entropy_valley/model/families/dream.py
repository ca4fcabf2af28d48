"""Dream (Dream-org/Dream-v0-Base-7B): Qwen2's tensors and computation, logits shifted by one; and Dream-Instruct.

Dream-Instruct (Dream-org/Dream-v0-Instruct-7B) is Dream tuned on chats. Its ``chat`` is Qwen2.5's template, which its
tokenizer keeps, for one user message, with the default system message. A turn, and so a translation, ends with
``<|im_end|>``; the EOS is still ``<|endoftext|>`` (id 151643), as in its ``generation_config.json``.
"""

from __future__ import annotations

import dataclasses

from entropy_valley.model.families.base import Family, Release, stock_config, with_architecture

FIXED = {
    "hidden_act": "silu", "tie_word_embeddings": False, "attention_dropout": 0.0, "use_sliding_window": False,
    "use_mrope": False, "rope_scaling": None,
}  # fmt: skip

CONFIG = {  # without the context: the rotation does not depend on it
    "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "rope_theta": 1e6, "rms_norm_eps": 1e-6,
}  # fmt: skip

BASE = Release(
    repository="Dream-org/Dream-v0-Base-7B",
    licence="Apache-2.0",
    revision="6572adb5535263e4d1a337b56942ba48b6dee2a9",
    config=CONFIG,
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
    fixed=FIXED,
    tokenizer_class="Qwen2TokenizerFast",
    releases=(BASE,),
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
            BASE, repository="Dream-org/Dream-v0-Instruct-7B", revision="05334cb9faaf763692dcf9d8737c642be2b2a6ae"
        ),
    ),
)
