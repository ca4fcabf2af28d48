"""An adapter that would compute another function than the one that is merged is refused, with all that is wrong."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_adapters import peft_save, random_adapter, write

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model.adapters import export, read_adapter
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone


def edit(folder, **changes):
    path = folder / "adapter_config.json"
    files.write_json(path, files.read_json(path) | changes)


def edit_tensors(folder, change):
    path = folder / "adapter_model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)


@pytest.fixture
def refused(tiny, tmp_path):
    folder = tiny["llada"][1]
    adapter = write(random_adapter(tiny["llada"][0]), tmp_path / "given", FAMILIES["llada"])

    def look(match):
        with pytest.raises(InputError, match=match):
            load_backbone(folder, "llada", adapter=adapter)

    return adapter, look


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"use_dora": True}, "use_dora is True; tensors .*lora_magnitude_vector"),
        ({"bias": "lora_only"}, "bias is 'lora_only'"),
        ({"lora_bias": True}, r"lora_bias is True; tensors .*lora_B\.bias"),
        ({"modules_to_save": ["attn_out"]}, r"modules_to_save is \['attn_out'\]; tensors .*attn_out"),
        ({"init_lora_weights": "olora"}, "init_lora_weights is 'olora'"),
    ],
)
def test_what_peft_saves_of_other_methods(tiny, tmp_path, config, match):
    folder = tiny["llada"][1]
    peft_save(folder, tmp_path, target_modules=["q_proj", "ff_proj"], **config)
    with pytest.raises(InputError, match=match):
        load_backbone(folder, "llada", adapter=tmp_path)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"fan_in_fan_out": True}, "fan_in_fan_out is True"),
        ({"alpha_pattern": {"q_proj": 1}, "rank_pattern": {"k_proj": 2}}, r"alpha_pattern is .*rank_pattern is"),
        ({"layer_replication": [[0, 2], [0, 2]]}, "layer_replication is"),
        ({"peft_type": "ADALORA"}, "peft_type is 'ADALORA'"),
        ({"a_later_method": {"strength": 2}}, "a_later_method is"),
        ({"r": 8}, r"attn_out has A \(3, 32\), B \(32, 3\), rank 8"),
    ],
)
def test_settings(refused, changes, match):
    folder, look = refused
    edit(folder, **changes)
    look(match)


MODULE = "base_model.model.model.{}_proj.lora_{}.weight"
STOCK, RELEASED = "layers.0.self_attn.q", "transformer.blocks.0.k"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda weights: weights.pop(MODULE.format("transformer.blocks.1.q", "B")),
            r"matrices without their pair: model\.transformer\.blocks\.1\.q_proj\. Give",
        ),
        (
            lambda weights: weights.update({"base_model.model.lm_head.weight": torch.zeros(3, 2)}),
            r"tensors beside plain LoRA matrices: base_model\.model\.lm_head\.weight",
        ),
        (
            lambda weights: weights.update({MODULE.format(STOCK, "A"): torch.zeros(3, 32)}),
            "tensors beside plain LoRA matrices: .*0.*q_proj",
        ),
        (
            lambda weights: weights.update(
                {
                    MODULE.format(RELEASED, "A"): torch.zeros(3, 32, 1),
                    MODULE.format(RELEASED, "B"): torch.zeros(16, 3, 1),
                }
            ),
            "tensors beside plain LoRA matrices: .*0.*k_proj",
        ),
        (lambda weights: weights.clear(), "no LoRA matrices"),
    ],
    ids=["a lost half", "a saved head", "a module in both layouts", "a convolution", "nothing"],
)
def test_tensors(refused, change, match):
    folder, look = refused
    edit_tensors(folder, change)
    look(match)


def test_everything_at_once(refused):
    folder, look = refused
    edit(folder, use_dora=True)

    def spoil(weights):
        for side in "AB":
            weights[f"base_model.model.model.transformer.blocks.7.q_proj.lora_{side}.weight"] = torch.zeros(3, 3)
            weights[f"base_model.model.model.transformer.wte.lora_{side}.weight"] = torch.zeros(3, 3)
        weights["base_model.model.model.transformer.blocks.0.ff_out.lora_A.weight"] = torch.zeros(3, 31)
        weights.pop("base_model.model.model.transformer.blocks.1.ff_out.lora_A.weight")

    edit_tensors(folder, spoil)
    look(
        r"given: settings of another function: use_dora is True; matrices without their pair: .*blocks\.1\.ff_out; "
        r"matrices that fit no linear layer: .*wte has A .*on a weight that is not there, "
        r".*blocks\.0\.ff_out has A \(3, 31\), B \(32, 3\), rank 3 on a weight \(32, 48\)"
    )


def test_a_pickle(refused):
    folder, look = refused
    weights = load_file(folder / "adapter_model.safetensors")
    (folder / "adapter_model.safetensors").unlink()
    look("no safetensors files. Give a whole checkpoint or adapter")
    torch.save(weights, folder / "adapter_model.bin")
    look("pickled weights only")


def test_an_adapter_of_another_attention_also_where_it_was_exported(refused, tiny):
    adapter, look = refused
    assert load_backbone(tiny["llada"][1], "llada", adapter=adapter, attention="prefix")  # nothing says otherwise
    files.write_json(adapter / "adapter.json", {"spec": {"attention": "prefix"}, "family": "llada"})
    look("given: trained with attention prefix, not bidirectional")
    export(adapter, exported := adapter.parent / "exported")
    with pytest.raises(InputError, match="exported: trained with attention prefix"):
        load_backbone(tiny["llada"][1], "llada", adapter=exported)
    assert load_backbone(tiny["llada"][1], "llada", adapter=exported, attention="prefix").attention == "prefix"


def test_tensors_that_are_not_those_of_adapter_json(refused):
    """All tensors times three changed every translation, under the digest of before."""
    adapter, look = refused
    given = read_adapter(adapter, FAMILIES["llada"])
    files.write_json(adapter / "adapter.json", {"adapter_digest": given.digest})
    export(adapter, adapter.parent / "exported", family="llada")
    edit_tensors(adapter, lambda weights: weights.update({name: 3 * tensor for name, tensor in weights.items()}))
    look(rf"adapter_model\.safetensors: its tensors have the digest \w+, but adapter\.json says {given.digest}")
    with pytest.raises(InputError, match="its tensors have the digest"):
        export(adapter, adapter.parent / "again", family="llada")
