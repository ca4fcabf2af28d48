"""Released layouts go in, stock models come out, and whatever does not fit is named."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from entropy_valley import files
from entropy_valley.backbone import checkpoint
from entropy_valley.backbone.families import FAMILIES
from entropy_valley.backbone.loading import load_backbone
from entropy_valley.errors import InputError


def weights(folder):
    return load_file(folder / "model.safetensors")


def rewrite(folder, tensors):
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_a_checkpoint_comes_back_bit_for_bit(made, family):
    model, folder = made[family.name]
    backbone = load_backbone(folder, family.name)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, backbone.model.state_dict()[name])
    assert backbone.context == 64
    assert backbone.shifted == family.shifted


def test_shards_are_one_checkpoint(made, family, folder):
    tensors = weights(folder)
    names = sorted(tensors)
    parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for part, chosen in parts.items():
        save_file({name: tensors[name] for name in chosen}, folder / part)
    index = {"weight_map": {name: part for part, chosen in parts.items() for name in chosen}}
    (folder / checkpoint.INDEX).write_text(json.dumps(index))
    (folder / "model.safetensors").unlink()
    loaded = load_backbone(folder, family.name).model.state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in made[family.name][0].state_dict().items())


def test_names_map_back_and_forth(made, family):
    for name in made[family.name][0].state_dict():
        assert family.stock_name(family.released_name(name)) == name


def test_llada_keeps_its_own_tensor_names(made):
    names = weights(made["llada"][1]).keys()
    assert "model.transformer.blocks.1.ff_out.weight" in names
    assert "model.transformer.ff_out.weight" in names
    assert not any("self_attn" in name for name in names)


class TestBadCheckpoints:
    def test_truncated_file(self, folder, family):
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(InputError, match=r"model\.safetensors: not a whole safetensors file"):
            load_backbone(folder, family.name)

    def test_missing_and_extra_tensors_are_named(self, folder, family):
        tensors = weights(folder)
        lost = sorted(tensors)[0]
        tensors["stranger"] = tensors.pop(lost)
        rewrite(folder, tensors)
        with pytest.raises(InputError, match=f"missing: {lost}; extra: stranger"):
            load_backbone(folder, family.name)

    def test_another_shape(self, folder, family):
        tensors = weights(folder)
        name = family.released_name("model.norm.weight")
        rewrite(folder, tensors | {name: torch.zeros(31)})
        with pytest.raises(InputError, match=rf"{name} is \(31,\), not \(32,\)"):
            load_backbone(folder, family.name)

    def test_another_family(self, folder, family):
        other = next(name for name in FAMILIES if name != family.name)
        with pytest.raises(InputError, match="model_type is"):
            load_backbone(folder, other)

    def test_a_config_that_computes_something_else(self, folder, family):
        field, value = next(iter(family.fixed.items()))
        edit_config(folder, **{field: not value if isinstance(value, bool) else "other"})
        with pytest.raises(InputError, match=field):
            load_backbone(folder, family.name)

    def test_a_config_without_a_field(self, folder, family):
        config = json.loads((folder / "config.json").read_text())
        del config["rope_theta"]
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(InputError, match="no field 'rope_theta'"):
            load_backbone(folder, family.name)

    def test_another_mask_id(self, folder, family):
        edit_config(folder, mask_token_id=7)
        with pytest.raises(InputError, match=r"mask id is \d+, config.json says 7"):
            load_backbone(folder, family.name)

    def test_no_tokenizer(self, folder, family):
        for path in folder.glob("tokenizer*"):
            path.unlink()
        with pytest.raises(InputError, match="no tokenizer"):
            load_backbone(folder, family.name)

    def test_pickles_are_refused(self, folder, family):
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        with pytest.raises(InputError, match=r"only pytorch_model\.bin.*never loaded"):
            load_backbone(folder, family.name)

    def test_an_adapter_of_another_backbone(self, folder, family, tmp_path):
        files.write_json(tmp_path / "adapter" / "adapter.json", {"backbone_digest": "0" * 32})
        with pytest.raises(InputError, match=r"trained on backbone 0{32}"):
            load_backbone(folder, family.name, adapter=tmp_path / "adapter")

    def test_a_truncated_adapter(self, made, family, tmp_path):
        facts = {"backbone_digest": checkpoint.checkpoint_digest(made[family.name][1])}
        files.write_json(tmp_path / "adapter.json", facts)
        files.write_json(tmp_path / "adapter_config.json", {"r": 2, "lora_alpha": 4})
        (tmp_path / "adapter_model.safetensors").write_bytes(b"cut")
        with pytest.raises(InputError, match=r"adapter_model\.safetensors: not a whole safetensors file"):
            load_backbone(made[family.name][1], family.name, adapter=tmp_path)


def test_the_manifest_digest_is_that_of_the_files(made, family, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "cache"))
    recorded = checkpoint.checkpoint_digest(folder)
    (folder / checkpoint.MANIFEST).unlink()
    assert checkpoint.checkpoint_digest(folder) == recorded
    monkeypatch.setattr(files, "file_digest", None)  # a second look reads no weights …
    assert checkpoint.checkpoint_digest(folder) == recorded
    monkeypatch.undo()
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "cache"))
    edit_config(folder, other=1)  # … unless a file has changed
    assert checkpoint.checkpoint_digest(folder) != recorded


def test_the_rotary_table_of_an_older_export_is_computed_instead(made, family, folder):
    rewrite(folder, weights(folder) | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)})
    load_backbone(folder, family.name)
