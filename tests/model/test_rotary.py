"""Angles are exact, and LLaDA's queries and keys are rotated in float32 whatever the model's dtype."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from entropy_valley.model.decoder import Angles, Config, _rotated
from entropy_valley.model.load import load_backbone
from entropy_valley.training.processes import float32_products

CONFIG = Config(
    vocab_size=9,
    hidden_size=256,
    intermediate_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=4096,
    rope_theta=5e5,
    rms_norm_eps=1e-5,
)
CPU = torch.device("cpu")


def stock(states, positions):
    """The angles of the stock class."""
    rotary = LlamaRotaryEmbedding(LlamaConfig(hidden_size=256, num_attention_heads=2, rope_theta=5e5))
    return [table[0] for table in rotary(states, positions[None])]


def test_only_llada_asks_for_it(tiny, family):
    model = load_backbone(tiny[family.name][1], family.name, dtype="bfloat16").model
    table, _ = model.angles.at(torch.arange(3), model.device, model.dtype)
    assert (table.dtype == torch.float32) == (family.model_type == "llada")


def test_a_rotation_in_float32_is_the_one_of_the_authors():
    """q and k to float32, rotated there, and back: what ``rope_full_precision`` says."""
    query, positions = torch.randn(9, 2, 128, dtype=torch.bfloat16), torch.arange(9)
    angles = Angles(CONFIG.model_copy(update={"float32_rotary": True})).at(positions, CPU, torch.bfloat16)
    authors, _ = apply_rotary_pos_emb(*2 * [query.float()], *stock(query.float(), positions))
    assert torch.equal(_rotated(query, *angles).bfloat16(), authors.bfloat16())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_tables_are_the_stock_class_s_angles_without_a_matrix_product(dtype):
    """In training a product is in TF32 on a GPU, and angles would be other ones than in decoding."""
    for rows in (1, 5, 64, 1001, 4096):
        positions = torch.arange(4096)[-rows:]
        with float32_products("cpu"), NoProducts():
            tables = Angles(CONFIG).at(positions, CPU, dtype)
        for table, expected in zip(tables, stock(torch.zeros(1, dtype=dtype), positions), strict=True):
            assert table.dtype == dtype and torch.equal(table, expected)


class NoProducts(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        assert "mm" not in operation._schema.name and "matmul" not in operation._schema.name
        return operation(*args, **(kwargs or {}))


def test_positions_beyond_the_context_have_angles_too():
    """What is too long is refused elsewhere, sentence by sentence; on a GPU an index out of range ends the process."""
    angles = Angles(CONFIG.model_copy(update={"max_position_embeddings": 8}))
    for count in (3, 11, 9):
        positions = torch.arange(count)
        expected = stock(torch.zeros(1), positions)
        assert all(map(torch.equal, angles.at(positions, CPU, torch.float32), expected))


def test_angles_of_decoding_serve_a_training_too():
    angles = Angles(CONFIG)
    with torch.inference_mode():
        angles.at(torch.arange(3), CPU, torch.float32)
    cos, _ = angles.at(torch.arange(3), CPU, torch.float32)
    assert not cos.is_inference()
