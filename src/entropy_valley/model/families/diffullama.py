"""DiffuLLaMA (diffusionfamily/diffullama): Llama-2's tensors and computation, logits shifted by one.

Llama-2 has no mask token. The authors use entry 811 of its vocabulary, ``ти``: it is the default of their training
script, and the released tokenizer declares it (github.com/HKUNLP/DiffuLLaMA; issue 11 gives the reason). Here too, the
declared mask token is used, and its id must be 811. The tokenizer also declares a pad token ``¨``, which is not used.
"""

from __future__ import annotations

from entropy_valley.model.families.base import LLAMA_FIXED, Family, Release, stock_config, with_architecture

CONFIG = {
    "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096, "rope_theta": 1e4,
    "rms_norm_eps": 1e-5,
}  # fmt: skip

DIFFULLAMA = Family(
    name="diffullama",
    architecture="LlamaForCausalLM",
    model_type="llama",
    shifted=True,
    bos=True,
    mask_token="ти",
    eos_token="</s>",
    pad_token=None,
    bos_token="<s>",
    to_stock=stock_config,
    to_released=with_architecture("LlamaForCausalLM"),
    fixed=LLAMA_FIXED,
    releases=(
        Release(
            repository="diffusionfamily/diffullama",
            licence="Apache-2.0; of its base model: Llama 2 Community License",
            revision="b20cd6d3e7b2c1016203bcd986e886fe885b6061",  # the weights of 01ea216, with the licence on the card
            config=CONFIG,
            ids={"mask": 811, "eos": 2, "pad": None, "bos": 1},
        ),
    ),
)
