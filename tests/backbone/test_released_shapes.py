"""The released 7-8B checkpoints on meta tensors: every name, every shape, every count, without a byte of weights."""

from __future__ import annotations

import pytest

from entropy_valley.backbone.families import FAMILIES
from entropy_valley.backbone.families.llada import FIXED
from entropy_valley.backbone.loading import empty_model, torch_dtype

LLADA = {
    "d_model": 4096,
    "embedding_size": 126464,
    "max_sequence_length": 4096,
    "mlp_hidden_size": 12288,
    "n_heads": 32,
    "n_kv_heads": 32,
    "n_layers": 32,
    "rms_norm_eps": 1e-5,
    "rope_theta": 5e5,
    "vocab_size": 126464,
    **FIXED,
}
DREAM = {
    "vocab_size": 152064,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_position_embeddings": 131072,
    "rope_theta": 1e6,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
DIFFULLAMA = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 4096,
    "rope_theta": 1e4,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
CONFIGS = {"llada": LLADA, "dream": DREAM, "diffullama": DIFFULLAMA}

# Tensors of one block and those outside, as the released indices name them.
LLADA_BLOCK = ["attn_norm", "attn_out", "ff_norm", "ff_out", "ff_proj", "k_proj", "q_proj", "up_proj", "v_proj"]
LLADA_OUTSIDE = {"model.transformer.wte.weight", "model.transformer.ln_f.weight", "model.transformer.ff_out.weight"}


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def released(request):
    family = FAMILIES[request.param]
    return family, empty_model(family, family.to_stock(CONFIGS[request.param]), torch_dtype("bfloat16"))


def count(model) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameters(released):
    family, model = released
    assert count(model) == {"llada": 8_015_581_184, "dream": 7_615_616_512, "diffullama": 6_738_415_616}[family.name]


def test_lora_of_rank_64(released):
    """r · (in + out) for each of the seven matrices; LLaDA's is 167.8 M, not the paper's 157 M."""
    family, model = released
    adapted = sum(
        64 * sum(module.weight.shape)
        for name, module in model.named_modules()
        if name.rpartition(".")[2] in family.lora_targets
    )
    assert adapted == {"llada": 167_772_160, "dream": 161_480_704, "diffullama": 159_907_840}[family.name]


def test_lladas_own_names():
    family = FAMILIES["llada"]
    model = empty_model(family, family.to_stock(LLADA), torch_dtype("bfloat16"))
    blocks = {f"model.transformer.blocks.{i}.{name}.weight" for i in range(32) for name in LLADA_BLOCK}
    assert {family.released_name(name) for name, _ in model.named_parameters()} == blocks | LLADA_OUTSIDE


def test_what_a_checkpoint_says_of_itself_comes_back(released):
    family, model = released
    said = family.to_released(model.config)
    assert {key: said[key] for key in CONFIGS[family.name]} == CONFIGS[family.name]
