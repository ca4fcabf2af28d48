"""Angles are exact, and LLaDA's queries and keys are rotated in float32 whatever the model's dtype."""

from __future__ import annotations

import pytest
import torch
from bfloat16 import measure
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, Qwen2Config
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.qwen2.modeling_qwen2 import Qwen2RotaryEmbedding

from entropy_valley.model.attention import exact
from entropy_valley.model.load import load_backbone
from entropy_valley.training.processes import float32_products


def test_only_llada_asks_for_it(tiny, family):
    rotary = load_backbone(tiny[family.name][1], family.name, dtype="bfloat16").model.model.rotary_emb
    table, _ = rotary(torch.zeros(1, 3, 8, dtype=torch.bfloat16), torch.arange(3)[None])
    assert (table.dtype == torch.float32) == (family.name == "llada")


def test_a_rotation_in_float32_is_the_one_of_the_authors():
    """q and k to float32, rotated there, and back: what ``rope_full_precision`` says."""
    config = LlamaConfig(hidden_size=64, num_attention_heads=2, rope_theta=5e5)
    query, positions = torch.randn(1, 2, 9, 32, dtype=torch.bfloat16), torch.arange(9)[None]
    cos, sin = exact(LlamaRotaryEmbedding, float32=True)(config)(query, positions)
    ours, _ = apply_rotary_pos_emb(query, query, cos, sin)
    tables = LlamaRotaryEmbedding(config)(query.float(), positions)
    authors, _ = apply_rotary_pos_emb(query.float(), query.float(), *tables)
    assert torch.equal(ours.bfloat16(), authors.bfloat16())


@pytest.mark.parametrize(
    ("stock", "config"), [(LlamaRotaryEmbedding, LlamaConfig), (Qwen2RotaryEmbedding, Qwen2Config)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_tables_are_the_stock_class_s_angles_without_a_matrix_product(stock, config, dtype):
    """In training a product is in TF32 on a GPU, and angles would be other ones than in decoding."""
    config = config(hidden_size=256, num_attention_heads=2, rope_theta=5e5, max_position_embeddings=4096)
    states, ours = torch.zeros(1, dtype=dtype), exact(stock, float32=False)(config)
    for rows in (1, 5, 64, 1001, 4096):
        positions = torch.arange(4096)[None, -rows:]
        with float32_products("cpu"), NoProducts():
            tables = ours(states, positions)
        for table, expected in zip(tables, stock(config)(states, positions), strict=True):
            assert table.dtype == dtype and torch.equal(table, expected)


class NoProducts(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        assert "mm" not in operation._schema.name and "matmul" not in operation._schema.name
        return operation(*args, **(kwargs or {}))


def test_positions_beyond_the_context_have_angles_too():
    """What is too long is refused elsewhere, sentence by sentence; on a GPU an index out of range ends the process."""
    config, positions = LlamaConfig(hidden_size=64, num_attention_heads=2, max_position_embeddings=8), torch.arange(11)
    stock, ours = LlamaRotaryEmbedding(config), exact(LlamaRotaryEmbedding, float32=False)(config)
    for count in (3, 11, 9):
        given = torch.zeros(1), positions[None, :count]
        assert all(map(torch.equal, ours(*given), stock(*given)))


def test_tables_are_computed_once():
    rotary = exact(LlamaRotaryEmbedding, float32=True)(LlamaConfig(hidden_size=64, num_attention_heads=2))
    with torch.inference_mode():
        rotary(torch.zeros(1, dtype=torch.bfloat16), torch.arange(3)[None])
    rotary.inv_freq.zero_()
    cos, _ = rotary(torch.zeros(1), torch.arange(3)[None])
    assert not cos.is_inference() and (cos[0, 1] < 1).any()


def test_what_is_ordered_otherwise_moves_logits_no_further_than_bfloat16_does():
    report = measure("llada", layers=2, width=128, ffn=256, heads=4, kv_heads=4, vocabulary=300)
    for change in ("rotation in bfloat16", "eager attention"):
        assert 0 < report[change]["mean"] < 1.2 * report["float32"]["mean"]
        assert report[change]["same argmax"] > 0.97
