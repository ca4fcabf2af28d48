"""An adapter that would compute another function than the one that is merged is refused, with all that is wrong."""

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
    save_file({name: tensor.clone() for name, tensor in weights.items()}, path)


@pytest.fixture
def refused(tiny, tmp_path):
    folder = tiny["llada"][1]
    adapter = write(random_adapter(tiny["llada"][0]), tmp_path / "given", FAMILIES["llada"])

    def look(match):
        with pytest.raises(InputError, match=match):
            load_backbone(folder, "llada", adapter=adapter)

    return adapter, look


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"peft_type": "IA3"}, r"given: adapter_config\.json: peft_type = 'IA3': must be 'LORA'"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out = True: is not known here"),
        ({"lora_bias": True, "init_lora_weights": "pissa"}, "is only supported with init_lora_weights=True"),
        ({"a_later_method": {"strength": 2}}, "a_later_method = "),
        ({"use_dora": True}, r"q_proj\.lora_magnitude_vector\.default\.weight is missing"),
        ({"rank_pattern": {"ff_proj": 2}}, r"gate_proj\.lora_B\.default\.weight: .*\[48, 3\].*\[48, 2\]"),
        ({"rank_pattern": {"[": 2}}, "rank_pattern"),
    ],
)
def test_settings(refused, changes, match):
    folder, look = refused
    edit(folder, **changes)
    look(match)


def test_a_bias_of_lora_beside_a_layer_without_one(tiny, tmp_path):
    """It runs beside the weights, but has nowhere to be merged into."""
    peft_save(tiny["llada"][1], tmp_path, target_modules=["q_proj"], lora_bias=True)
    assert load_backbone(tiny["llada"][1], "llada", adapter=tmp_path, merge=False)
    with pytest.raises(InputError, match=r"`lora_bias=True` because the base layer has no bias.*merge_adapter: false"):
        load_backbone(tiny["llada"][1], "llada", adapter=tmp_path)


PREFIX = "base_model.model.model.transformer.blocks"
CHANGES = {
    "a lost half": (
        lambda weights: weights.pop(f"{PREFIX}.1.q_proj.lora_B.weight"),
        r"layers\.1\.self_attn\.q_proj\.lora_B\.weight is missing\. Give",
    ),
    "a layer too many": (
        lambda weights: weights.update(
            {f"{PREFIX}.7.q_proj.lora_{side}.weight": weights[f"{PREFIX}.0.q_proj.lora_{side}.weight"] for side in "AB"}
        ),
        r"layers\.7\.self_attn\.q_proj\.lora_A\.weight is of no layer, .*\. Give a LoRA adapter of this backbone",
    ),
    "nothing": (lambda weights: weights.clear(), "it changes nothing"),
    "zero": (
        lambda weights: weights.update({name: 0 * one for name, one in weights.items() if "lora_B" in name}),
        "it changes nothing: every lora_B is zero",
    ),
}


@pytest.mark.parametrize(("change", "match"), CHANGES.values(), ids=CHANGES)
def test_tensors(refused, change, match):
    folder, look = refused
    edit_tensors(folder, change)
    look(match)


def test_everything_at_once(refused):
    folder, look = refused
    edit(folder, use_bdlora={"nblocks": 2})

    def spoil(weights):
        for name, tensor in [*weights.items()]:
            if "blocks.0.q_proj" in name:
                weights[name.replace("q_proj", "another")] = tensor.clone()
        weights["base_model.model.model.transformer.blocks.0.ff_out.lora_A.weight"].fill_(torch.nan)

    edit_tensors(folder, spoil)
    look(
        r"given: adapter_config\.json: use_bdlora = .*, "
        r"model\.transformer\.blocks\.0\.another\.lora_A\.weight is of no layer, .*"
        r"model\.layers\.0\.mlp\.down_proj\.lora_A\.weight is not finite\. Give"
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
    look("given: trained on backbone .* with attention prefix, not on .* with bidirectional")
    export(adapter, exported := adapter.parent / "exported")
    with pytest.raises(InputError, match=r"exported: trained on backbone .* with attention prefix"):
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
