import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file, save_file
from tiny_training import spec

from entropy_valley.errors import InputError
from entropy_valley.model.attention import pack
from entropy_valley.model.families import FAMILIES
from entropy_valley.training import adapter
from entropy_valley.training.adapter import attach_lora, lora_modules, trainable
from entropy_valley.training.settings import Lora

SETTINGS = Lora(rank=2, alpha=6, dropout=0.05)


@pytest.fixture
def adapted(load):
    """A tiny backbone and its adapter, as if trained."""
    backbone = load()
    model = attach_lora(backbone.model, backbone.family, SETTINGS, seed=1).eval()
    torch.manual_seed(0)
    for parameter in trainable(model):
        parameter.data.normal_(std=0.3)
    return backbone, model


def save(backbone, folder):
    facts = {"seed": 1, "backbone_digest": backbone.digest, "family": "llada"}
    adapter.save(backbone, folder, SETTINGS.peft, facts, [[5.5, 5.0, 1e-3, 0.25]])


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_targets_are_the_seven_of_every_block_and_never_the_head(load, family):
    backbone = load(family)
    modules = lora_modules(backbone.model, backbone.family)
    assert len(modules) == 2 * 7
    assert not [name for name in modules if "head" in name or "embed" in name]
    model = attach_lora(backbone.model, backbone.family, SETTINGS, seed=1)
    adapted = {name.partition(".lora_A")[0] for name, _ in model.named_parameters() if ".lora_A" in name}
    assert sorted(adapted) == modules
    shapes = {"self_attn.q_proj": 32, "self_attn.o_proj": 32, "self_attn.k_proj": 24, "self_attn.v_proj": 24}
    per_block = sum(shapes.values()) + 3 * (16 + 24)
    assert sum(parameter.numel() for parameter in trainable(model)) == 2 * 2 * per_block


def test_an_adapter_of_no_use_leaves_no_folder(adapted, tmp_path):
    backbone, model = adapted
    for parameter in trainable(model):
        parameter.data.zero_()
    with pytest.raises(InputError, match="every lora_B is zero"):
        save(backbone, tmp_path / "adapter")
    assert not list(tmp_path.iterdir())


def test_a_finished_adapter_is_known_by_its_facts_its_files_and_its_weights(adapted, tmp_path):
    backbone, _ = adapted
    folder = tmp_path / "adapter"
    facts = {"seed": 1, "backbone_digest": backbone.digest}
    assert not adapter.is_finished(folder, facts)
    save(backbone, folder)
    assert adapter.is_finished(folder, facts)
    assert not adapter.is_finished(folder, facts | {"seed": 2})
    for name in ("adapter_model.safetensors", "adapter_config.json", "losses.csv"):
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        assert not adapter.is_finished(folder, facts), name
        (folder / name).write_bytes(content)
    weights = folder / "adapter_model.safetensors"
    save_file({name: 3 * tensor for name, tensor in load_file(weights).items()}, weights)
    assert not adapter.is_finished(folder, facts)


def test_a_pattern_of_no_module():
    with pytest.raises(ValidationError, match="upproj"):
        Lora(rank=2, alpha=6, dropout=0.05, rank_pattern={"up_proj": 3, "upproj": 4})


@pytest.mark.parametrize(
    ("given", "precision"),
    [
        ({"use_rslora": True}, "bfloat16"),
        ({"init_lora_weights": "orthogonal"}, "float32"),
        ({"init_lora_weights": "pissa"}, "bfloat16"),
        ({"init_lora_weights": "olora", "use_dora": True}, "float32"),
        ({"rank_pattern": {"mlp.up_proj": 3}, "alpha_pattern": {r"layers.\d.self_attn.q_proj": 9}}, "float32"),
    ],
    ids=str,
)
def test_pefts_kinds_of_lora_are_trained_and_read(finetune, load, monkeypatch, given, precision):
    """What was trained is what decoding loads, beside the weights and merged."""
    save, trained, sequence = adapter.save, [], pack([[5, 6, 7, 8]])

    def spy(backbone, *rest):
        config = backbone.model.peft_config["default"]
        assert {key: getattr(config, key) for key in given} == given
        with torch.inference_mode():
            trained.append(backbone.model.hidden_states(sequence).float())
        save(backbone, *rest)

    monkeypatch.setattr(adapter, "save", spy)
    job = spec(max_steps=2, dropout=0.1) | {"precision": precision}
    job["training"]["lora"] |= given
    folder = finetune(job)
    with torch.inference_mode():
        bare, beside, merged = (
            load(dtype=precision, **how).model.hidden_states(sequence).float()
            for how in ({}, {"adapter": folder, "merge": False}, {"adapter": folder})
        )
    rounding = (1e-4 if precision == "float32" else 0.03) * bare.abs().max()
    for loaded in (beside, merged):
        assert (loaded - trained[0]).abs().max() < rounding
    assert (trained[0] - bare).abs().max() > 2 * rounding
