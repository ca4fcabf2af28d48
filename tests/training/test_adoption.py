"""A given adapter, in either layout, becomes one like our own; what it adapts otherwise is written down."""

import shutil

import pytest
import torch
from fake_hub import contents, serve
from safetensors.torch import load_file
from tiny_adapters import adapter_of

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model import checkpoint
from entropy_valley.model.adapters import read_adapter, write_adapter
from entropy_valley.model.families import FAMILIES, LORA_TARGETS
from entropy_valley.model.load import load_backbone
from entropy_valley.training import adoption

NOWHERE = {"repository": None, "revision": None, "subfolder": None}
SPEC = {"backbone": "tiny", "direction": "en-de", "seed": 1, "revision": 1}
OLD, COMMIT = "a" * 40, "c" * 40


def given_adapter(family, checkpoint_folder, out, *, released=True, but=(), head=False, scale=0.3):
    """A trained adapter of the tiny checkpoint, without the modules that end in ``but``; perhaps with the head."""
    torch.manual_seed(0)
    targets = (*(name for name in LORA_TARGETS if name not in but), *(["lm_head"] if head else []))
    model = load_backbone(checkpoint_folder, family.name).model
    pairs = {}
    for name, module in model.named_modules():
        if name.rpartition(".")[2] in targets:
            outer, inner = module.weight.shape
            pairs[name] = torch.randn(2, inner), scale * torch.randn(outer, 2)
    adapter = adapter_of(pairs, 4.0, base_model_name_or_path="/their/disk/base")
    out.mkdir(parents=True)
    write_adapter(adapter, out, family if released else None)
    return adapter


def job(root, checkpoints, family, folder=None, **source):
    return {
        "spec": SPEC | {"family": family, "source": NOWHERE | source},
        "backbone": checkpoints / family,
        "out": root / "adapter",
        "work": root / "work",
        "folder": folder,
    }


@pytest.mark.parametrize("released", [True, False], ids=["released", "stock"])
def test_either_layout_becomes_ours(checkpoints, tmp_path, released, family="llada"):
    given = given_adapter(FAMILIES[family], checkpoints / family, tmp_path / "given", released=released)
    adoption.adopt(**job(tmp_path, checkpoints, family, tmp_path / "given"))
    names = load_file(tmp_path / "adapter" / "adapter_model.safetensors").keys()
    assert names == {f"base_model.model.{module}.lora_{side}.weight" for module in given.modules for side in "AB"}
    card = files.read_json(tmp_path / "adapter" / "adapter.json")
    assert card["adopted"] and card["adapter_digest"] == given.digest
    assert card["backbone_digest"] == checkpoint.checkpoint_digest(checkpoints / family)
    assert card["trainable_parameters"] == sum(tensor.numel() for tensor in given.weights.values())
    assert card["not_adapted"] == card["also_adapted"] == []
    theirs, ours = (
        load_backbone(checkpoints / family, family, adapter=tmp_path / folder).model.state_dict()
        for folder in ("given", "adapter")
    )
    assert all(torch.equal(theirs[name], ours[name]) for name in ours)


def test_what_it_adapts_otherwise_is_said(checkpoints, tmp_path, capsys):
    given_adapter(FAMILIES["llada"], checkpoints / "llada", tmp_path / "given", but=["o_proj"], head=True)
    adoption.adopt(**job(tmp_path, checkpoints, "llada", tmp_path / "given"))
    card = files.read_json(tmp_path / "adapter" / "adapter.json")
    assert card["not_adapted"] == [f"model.layers.{block}.self_attn.o_proj" for block in range(2)]
    assert card["also_adapted"] == ["lm_head"]
    log = capsys.readouterr().err
    assert "not adapted: 2 modules" in log and "also adapted: 1 module" in log


def released(folder):
    """A hub whose newest commit has the files of a folder."""
    return serve({OLD: {}, COMMIT: contents(folder)})


@pytest.mark.parametrize("revision", [None, COMMIT])
def test_from_the_hub(checkpoints, tmp_path, reach, revision):
    backbone = shutil.copytree(checkpoints / "llada", tmp_path / "backbones" / "llada")
    checkpoint.write_manifest(backbone, FAMILIES["llada"], repository="someone/llada")
    given = given_adapter(FAMILIES["llada"], backbone, tmp_path / "hub" / "en-de")
    source = {"repository": "someone/model", "revision": revision, "subfolder": "en-de"}
    adopting = job(tmp_path, tmp_path / "backbones", "llada", **source)
    files.write_json(tmp_path / "work" / "adapter.json", {"backbone_digest": "b1"})  # what another source left
    with released(tmp_path / "hub") as server:
        reach(server.url)
        adoption.adopt(**adopting)
    card = files.read_json(tmp_path / "adapter" / "adapter.json")
    assert card["source"].pop("digest") and card["source"] == source | {"revision": COMMIT}
    adopted = read_adapter(tmp_path / "adapter", FAMILIES["llada"])
    assert (adopted.digest, adopted.settings["base_model_name_or_path"]) == (given.digest, "someone/llada")
    assert not (tmp_path / "work").exists()


def test_the_folder_of_a_training_is_left_alone(checkpoints, tmp_path):
    """Snakemake has removed what the rule makes, but the losses are no output of it."""
    given_adapter(FAMILIES["llada"], checkpoints / "llada", tmp_path / "given")
    losses = tmp_path / "adapter" / "losses.csv"
    files.write_text(losses, "step,loss\n")
    with pytest.raises(InputError, match=r"adapter: holds an adapter trained here\. Give another `results`"):
        adoption.adopt(**job(tmp_path, checkpoints, "llada", tmp_path / "given"))
    assert losses.exists()


def test_what_cannot_be_adopted_is_refused(checkpoints, tmp_path):
    def refused(match, family="llada"):
        with pytest.raises(InputError, match=match):
            adoption.adopt(**job(tmp_path, checkpoints, family, tmp_path / "given"))
        assert not (tmp_path / "adapter").exists()

    refused(r"given: no such folder\. Correct `released\.tiny\.en-de\.1\.folder`")
    given_adapter(FAMILIES["llada"], checkpoints / "llada", tmp_path / "given")
    refused(r"blocks\.0\..* is of no layer", family="dream")
    adopting = job(tmp_path / "other", checkpoints, "llada", tmp_path / "given")
    adopting["spec"]["attention"] = "prefix"  # what the adapter does not say is as the config says
    adoption.adopt(**adopting)
    shutil.copy(tmp_path / "other" / "adapter" / "adapter.json", tmp_path / "given")
    refused("given: trained on backbone .* with attention prefix, not on .* with bidirectional")
    files.write_json(tmp_path / "given" / "adapter.json", {"backbone_digest": "b1"})
    refused("trained on backbone b1")
