"""The precision nf4: the layers' weights in 4 bits, by bitsandbytes; and by a stand-in for it that keeps all bits."""

import sys
import types

import pytest
import torch
from tiny_checkpoints import SOURCES

from entropy_valley import InputError, Translator
from entropy_valley.experiment.checking.size import Size
from entropy_valley.model.load import load_backbone

GIVEN = {"prompt": "{src} = ", "ratios": [0.6, 0.8, 1.0], "steps": 3}


class Linear4bit(torch.nn.Linear):
    def __init__(self, inputs, outputs, compute_dtype, device):
        super().__init__(inputs, outputs, device=device)
        self.compute_dtype = compute_dtype

    def forward(self, states):
        assert states.dtype == self.compute_dtype and isinstance(self.weight, Params4bit)
        return super().forward(states)


class Params4bit(torch.nn.Parameter):
    def __new__(cls, data, requires_grad, quant_type):
        assert quant_type == "nf4"
        return super().__new__(cls, data, requires_grad)


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", types.ModuleType("bitsandbytes"))
    module = types.ModuleType("bitsandbytes.nn")
    module.Linear4bit, module.Params4bit = Linear4bit, Params4bit
    monkeypatch.setitem(sys.modules, "bitsandbytes.nn", module)


@pytest.mark.parametrize("name", ["dream", "a2d_qwen3"])
def test_layers_and_nothing_else_are_in_four_bits(checkpoints, name, stand_in):
    """With biases, and with a tied head."""
    folder = checkpoints / name
    rounded, small = (load_backbone(folder, name, dtype=dtype).model for dtype in ("bfloat16", "nf4"))
    replaced = [part for part in small.modules() if isinstance(part, Linear4bit)]
    assert len(replaced) == 14 and type(small.lm_head) is torch.nn.Linear
    for (key, one), (other, same) in zip(rounded.named_parameters(), small.named_parameters(), strict=True):
        assert key == other and torch.equal(one, same)
    ours, theirs = (
        Translator.load(folder, **GIVEN, dtype=dtype).translate(SOURCES[:3]) for dtype in ("nf4", "bfloat16")
    )
    assert ours == theirs


def test_what_is_said_without_bitsandbytes(checkpoints, monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes.nn", None)
    with pytest.raises(InputError, match=r"precision nf4: bitsandbytes cannot be imported .* pip install bitsandbytes"):
        load_backbone(checkpoints / "dream", "dream", dtype="nf4")


def test_an_8b_model_in_four_bits_fits_a_card_of_12_gb():
    llada = Size(width=4096, ffn=12288, layers=32, vocabulary=126464, heads=32, kv_heads=32, head=128)
    assert llada.weights("bfloat16") == 2 * llada.parameters
    assert 5.9e9 < llada.weights("nf4") < 6.1e9
    assert llada.weights("nf4") + llada.pass_bytes(4096, item=2, rows=256) < 8e9
