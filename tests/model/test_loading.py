"""Released layouts go in, stock models come out, and whatever does not fit is named."""

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
from entropy_valley.model.families import COMPUTED, FAMILIES
from entropy_valley.model.load import load_backbone, torch_dtype


def weights(folder):
    return load_file(folder / "model.safetensors")


def rewrite(folder, tensors):
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


@pytest.fixture(scope="module", params=["a2d_qwen3", "llada"])
def family(request):
    """Names and fields of its own, and stock ones with a tied head."""
    return FAMILIES[request.param]


def test_a_checkpoint_comes_back_bit_for_bit(tiny):
    for name, family in FAMILIES.items():
        model, folder = tiny[name]
        backbone = load_backbone(folder, name)
        for key, tensor in model.state_dict().items():
            assert torch.equal(tensor, backbone.model.state_dict()[key])
        assert (backbone.context, backbone.shifted) == (64, family.shifted)


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
    loaded = dict(load_backbone(folder, family.name, dtype=dtype).model.named_parameters())
    assert set(loaded) == {family.stock_name(name) for name in kept}
    for name, tensor in kept.items():
        assert torch.equal(loaded[family.stock_name(name)], tensor.to(torch_dtype(dtype)))


def test_whatever_does_not_fit_is_named_at_once(tiny, folder, family):
    """It is found by the headers, before any weight is read."""
    wanted = [family.released_name(name) for name, _ in tiny[family.name][0].named_parameters()]
    parts = split(folder)
    lost, kept = sorted(parts[SHARDS[0]])[:7], sorted(parts[SHARDS[0]])[7:]
    save_file({name: parts[SHARDS[0]][name] for name in kept}, folder / SHARDS[0])
    save_file(parts[SHARDS[1]] | {"stranger": torch.ones(1), kept[0]: torch.ones(1)}, folder / SHARDS[1])
    with pytest.raises(InputError) as caught:
        load_backbone(folder, family.name)
    missing = ", ".join(f"{name} is missing" for name in wanted if name in lost)
    twice = f"{kept[0]} is in {SHARDS[0]} and in {SHARDS[1]}"
    assert all(part in str(caught.value) for part in (missing, twice, "stranger is of no layer", f"{kept[0]} is (1,)"))
    (folder / "model-3.safetensors").write_bytes(b"cut")
    with pytest.raises(InputError, match=r"model-3\.safetensors: not a whole safetensors file"):
        load_backbone(folder, family.name)


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


class TestBadCheckpoints:
    def test_another_family(self, folder, family):
        other = next(name for name, one in FAMILIES.items() if one.model_type != family.model_type)
        with pytest.raises(InputError, match=r"model_type is '[\w-]+', not '[\w-]+'\. Name the family"):
            load_backbone(folder, other)

    def test_a_type_that_no_family_has(self, folder, family):
        edit_config(folder, model_type="mamba")
        with pytest.raises(InputError, match=r"'mamba', not .* is another model; docs/extending\.md#a-new"):
            load_backbone(folder, family.name)

    def test_a_config_that_computes_something_else(self, folder, family):
        field, value = next(iter({**family.fixed, **COMPUTED}.items()))
        edit_config(folder, **{field: not value if isinstance(value, bool) else "other"})
        with pytest.raises(InputError, match=field):
            load_backbone(folder, family.name)

    def test_a_config_without_a_field(self, folder, family):
        config = config_of(folder)
        del config["rope_theta"]
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(InputError, match="no field 'rope_theta'"):
            load_backbone(folder, family.name)


def test_the_manifest_digest_is_that_of_the_files(tiny, family, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path / "cache"))
    recorded = checkpoint.checkpoint_digest(folder)
    (folder / checkpoint.MANIFEST).unlink()
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


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def test_rotary_settings_as_transformers_5_writes_them(folder, family):
    """In `rope_parameters`, in place of the family's name of theta."""
    config, name = config_of(folder), family.fields["rope_theta"]
    del config[name]
    given = {"rope_theta": 20_000.0, "rope_type": "default"}
    files.write_json(folder / "config.json", config | {"rope_parameters": given})
    assert load_backbone(folder, family.name).model.config.rope_theta == 20_000.0


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"rope_theta": 1e4, "rope_type": "llama3", "factor": 8.0}, r"rope_scaling is \{'rope_type': 'llama3'"),
        ({"rope_theta": 1e4, "partial_rotary_factor": 0.5}, r"rope_scaling is \{'partial_rotary_factor': 0\.5\}"),
        ("yarn", r"rope_scaling is \{'rope_type': 'yarn'\}"),
    ],
)
def test_other_rotations_are_refused_by_name(tiny, tmp_path, parameters, problem):
    folder = shutil.copytree(tiny["diffullama"][1], tmp_path / "copy")
    edit_config(folder, rope_parameters=parameters)
    with pytest.raises(InputError, match=rf"{problem}.* The decoder does not compute this"):
        load_backbone(folder, "diffullama")


def test_a_tied_head_is_stored_once(tiny, tmp_path):
    model, folder = tiny["a2d_qwen3"]
    folder = shutil.copytree(folder, tmp_path / "copy")
    stored = weights(folder)
    assert "lm_head.weight" not in stored and "model.layers.0.self_attn.q_norm.weight" in stored
    rewrite(folder, stored | {"lm_head.weight": torch.zeros_like(stored["model.embed_tokens.weight"])})
    loaded = load_backbone(folder, "a2d_qwen3").model
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight  # stock classes do not read such a copy either
    assert torch.equal(loaded.lm_head.weight, model.model.embed_tokens.weight)


def test_an_index_names_the_files_that_are_read(folder, family):
    """A file from before the checkpoint was divided may lie beside them."""
    whole = weights(folder)
    stale = {name: tensor + 1 for name, tensor in whole.items()}
    halves = [dict(list(whole.items())[part::2]) for part in (0, 1)]
    names = [f"model-0000{part}-of-00002.safetensors" for part in (1, 2)]
    for name, half in zip(names, halves, strict=True):
        checkpoint.write_tensors(half, folder / name)
    index = {tensor: name for name, half in zip(names, halves, strict=True) for tensor in half}
    rewrite(folder, stale)
    files.write_json(folder / checkpoint.INDEX, {"weight_map": index})
    loaded = load_backbone(folder, family.name).model
    first = next(iter(whole))
    assert torch.equal(loaded.get_parameter(family.stock_name(first)), whole[first])
    (folder / names[1]).unlink()
    with pytest.raises(InputError, match=rf"{names[1]}: file not found"):
        load_backbone(folder, family.name)
