"""Released layouts go in, stock models come out, and whatever does not fit is named."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model import checkpoint
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone, torch_dtype


def weights(folder):
    return load_file(folder / "model.safetensors")


def rewrite(folder, tensors):
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_a_checkpoint_comes_back_bit_for_bit(tiny, family):
    model, folder = tiny[family.name]
    backbone = load_backbone(folder, family.name)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, backbone.model.state_dict()[name])
    assert backbone.context == 64
    assert backbone.shifted == family.shifted


SHARDS = ("model-1.safetensors", "model-2.safetensors")


def split(folder):
    """Spread the weights over two files; returns what is in each."""
    tensors = weights(folder)
    parts = {file: {name: tensors[name] for name in sorted(tensors)[half::2]} for half, file in enumerate(SHARDS)}
    (folder / "model.safetensors").unlink()
    for file, part in parts.items():
        save_file(part, folder / file)
    return parts


def test_shards_are_one_checkpoint(tiny, family, folder):
    split(folder)
    loaded = load_backbone(folder, family.name).model.state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in tiny[family.name][0].state_dict().items())


@pytest.mark.parametrize("stored", ["float32", "bfloat16"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_take_the_dtype_of_the_model(folder, family, stored, dtype):
    kept = {name: tensor.to(torch_dtype(stored)) for name, tensor in weights(folder).items()}
    rewrite(folder, kept)
    loaded = load_backbone(folder, family.name, dtype=dtype).model.state_dict()
    assert set(loaded) == {family.stock_name(name) for name in kept}
    for name, tensor in kept.items():
        assert torch.equal(loaded[family.stock_name(name)], tensor.to(torch_dtype(dtype)))


class TestBadFiles:
    """Whatever does not fit is found by the headers, before any weight is read, and named at once."""

    def refused(self, folder, family, *patterns):
        with pytest.raises(InputError) as caught:
            load_backbone(folder, family.name)
        for pattern in patterns:
            assert re.search(pattern, str(caught.value)), (pattern, str(caught.value))
        return str(caught.value)

    def test_a_missing_shard(self, folder, family):
        name = min(split(folder)[SHARDS[1]])
        (folder / SHARDS[1]).unlink()
        assert "extra" not in self.refused(folder, family, f"{folder}: missing: .*{re.escape(name)}")

    def test_a_tensor_in_two_files(self, folder, family):
        parts = split(folder)
        name = sorted(parts[SHARDS[0]])[0]
        save_file(parts[SHARDS[1]] | {name: parts[SHARDS[0]][name]}, folder / SHARDS[1])
        self.refused(folder, family, rf"{folder}: in two files: {name} \({SHARDS[0]}, {SHARDS[1]}\)\. ")

    def test_all_at_once(self, tiny, folder, family):
        wanted = [family.released_name(name) for name, _ in tiny[family.name][0].named_parameters()]
        parts = split(folder)
        lost, kept = sorted(parts[SHARDS[0]])[:7], sorted(parts[SHARDS[0]])[7:]
        save_file({name: parts[SHARDS[0]][name] for name in kept}, folder / SHARDS[0])
        save_file(parts[SHARDS[1]] | {"stranger": torch.ones(1), kept[0]: torch.ones(1)}, folder / SHARDS[1])
        (folder / "model-3.safetensors").write_bytes(b"cut")
        self.refused(
            folder,
            family,
            r"files: model-3\.safetensors \(not a whole",
            f"in two files: {kept[0]}",
            f"missing: {', '.join(name for name in wanted if name in lost)}",
            "extra: stranger",
            rf"of another shape: {kept[0]} is \(1,\)",
        )


def test_the_command_for_pickles_is_true(tiny, tmp_path):
    """Pickles are refused; the page that the error names has a command that converts them."""
    model, made_folder = tiny["llada"]
    folder = shutil.copytree(made_folder, tmp_path / "with space")
    tensors = list(weights(folder).items())
    (folder / "model.safetensors").unlink()
    for part in (0, 1):  # as transformers wrote them, with views of one tensor among them
        flat = torch.cat([tensor.flatten() for _, tensor in tensors[part::2]])
        views = flat.split([tensor.numel() for _, tensor in tensors[part::2]])
        state = {name: view.view(tensor.shape) for (name, tensor), view in zip(tensors[part::2], views, strict=True)}
        torch.save(state, folder / f"pytorch_model-0000{part + 1}-of-00002.bin")
    torch.save(argparse.Namespace(epochs=3), folder / "training_args.bin")  # a pickle of code, not of tensors
    with pytest.raises(InputError, match=r"pickled weights only.* docs/models_and_data\.md"):
        load_backbone(folder, "llada")
    page = Path("docs/models_and_data.md").read_text(encoding="utf-8")
    command = re.search(r"## Pickled weights\n.*?```bash\n(.*?)```", page, re.DOTALL)[1]
    command = command.replace("FOLDER", f"'{folder}'")
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", command], check=True, env=environment)
    loaded = load_backbone(folder, "llada").model.state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in model.state_dict().items())


def test_a_folder_without_weights(folder, family):
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="no safetensors files"):
        load_backbone(folder, family.name)


class TestBadCheckpoints:
    def test_another_family(self, folder, family):
        other = next(name for name in FAMILIES if name != family.name)
        with pytest.raises(InputError, match=r"model_type is '\w+', not '\w+'\. Name the family"):
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

    def test_no_tokenizer(self, folder, family):
        for path in folder.glob("tokenizer*"):
            path.unlink()
        with pytest.raises(InputError, match="no tokenizer"):
            load_backbone(folder, family.name)

    def test_a_truncated_adapter(self, tiny, family, tmp_path):
        facts = {"backbone_digest": checkpoint.checkpoint_digest(tiny[family.name][1])}
        files.write_json(tmp_path / "adapter.json", facts)
        files.write_json(tmp_path / "adapter_config.json", {"r": 2, "lora_alpha": 4})
        (tmp_path / "adapter_model.safetensors").write_bytes(b"cut")
        with pytest.raises(InputError, match=r"adapter_model\.safetensors: not a whole safetensors file"):
            load_backbone(tiny[family.name][1], family.name, adapter=tmp_path)


def test_the_manifest_digest_is_that_of_the_files(tiny, family, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "cache"))
    recorded = checkpoint.checkpoint_digest(folder)
    (folder / checkpoint.MANIFEST).unlink()
    assert checkpoint.checkpoint_digest(folder) == recorded
    monkeypatch.setattr(files, "LARGE", 1000)
    assert checkpoint.checkpoint_digest(folder) == recorded
    small = files.file_digest
    monkeypatch.setattr(files, "file_digest", lambda path: path.suffix == ".json" and small(path))
    assert checkpoint.checkpoint_digest(folder) == recorded
    monkeypatch.undo()
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "cache"))
    edit_config(folder, other=1)  # … unless a file has changed
    assert checkpoint.checkpoint_digest(folder) != recorded


def test_a_copy_that_was_trained_on_is_another_checkpoint(tiny, tmp_path):
    folder = shutil.copytree(tiny["llada"][1], tmp_path / "copy")
    fetched = {**checkpoint.manifest(folder), "repository": "someone/model"}
    files.write_json(folder / checkpoint.MANIFEST, fetched)
    assert checkpoint.manifest(folder) == fetched
    rewrite(folder, {name: tensor + 1 for name, tensor in weights(folder).items()})  # of the same names and sizes
    manifest = checkpoint.manifest(folder)
    assert manifest["repository"] == "someone/model"
    assert manifest["digest"] != fetched["digest"]
    assert manifest["files"]["model.safetensors"] != fetched["files"]["model.safetensors"]


def test_the_rotary_table_of_an_older_export_is_computed_instead(tiny, family, folder):
    rewrite(folder, weights(folder) | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)})
    load_backbone(folder, family.name)
