"""A trained adapter as a folder: saved in PEFT's format, checked, and there only when it passed."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from entropy_valley import files, folders
from entropy_valley.backbone.loading import Backbone, load_backbone
from entropy_valley.backbone.packing import hidden_states, pack
from entropy_valley.training import lora

_PREFIX = "base_model.model."
CARD = "adapter.json"
PACKAGES = ("torch", "transformers", "peft", "deepspeed")


class AdapterError(RuntimeError):
    """A trained adapter that would not do what its name says."""


def tensors(adapted: Any) -> dict[str, torch.Tensor]:
    """The adapters' tensors under PEFT's names, float32, on the CPU."""
    from peft import get_peft_model_state_dict

    state = get_peft_model_state_dict(adapted)
    return {name: state[name].detach().float().cpu().contiguous() for name in sorted(state)}


def tensors_digest(weights: Mapping[str, torch.Tensor]) -> str:
    """One digest of names, shapes and bytes, whatever file they are in."""
    entries = [
        (name, list(tensor.shape), hashlib.blake2b(tensor.numpy().tobytes(), digest_size=16).hexdigest())
        for name, tensor in sorted(weights.items())
    ]
    return files.digest(entries)


def versions() -> dict[str, str]:
    """The versions of the packages that decide the numbers of a training."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def is_finished(folder: Path, identity: Mapping[str, Any], backbone: Backbone) -> bool:
    """Whether ``folder`` already holds this very adapter: a config that was changed and changed back costs nothing."""
    if not (folder / CARD).exists():
        return False
    card, wanted = files.read_json(folder / CARD), {**identity, **_circumstances(backbone)}
    return all(card.get(key) == value for key, value in wanted.items())


def _circumstances(backbone: Backbone) -> dict[str, Any]:
    return {"backbone_digest": backbone.digest, "family": backbone.family.name, "versions": versions()}


def save(adapted: Any, backbone: Backbone, checkpoint: Path, folder: Path, facts: Mapping[str, Any]) -> None:
    """Write ``adapter_model.safetensors``, ``adapter_config.json`` and ``adapter.json``, then let the gate judge.

    ``backbone`` is the adapted one and ``checkpoint`` its folder. ``facts`` are added to ``adapter.json``: nothing
    that differs from run to run. The folder appears whole and only after the gate; AdapterError otherwise.
    """
    from safetensors.torch import save_file

    weights, wanted = tensors(adapted), lora.targets(backbone.model, backbone.family)
    with folders.whole(folder) as new:
        save_file(weights, new / "adapter_model.safetensors", metadata={"format": "pt"})
        files.write_json(new / "adapter_config.json", _config(adapted, wanted))
        summary = {
            "adapter_digest": tensors_digest(weights),
            "trainable_parameters": sum(tensor.numel() for tensor in weights.values()),
        }
        files.write_json(new / CARD, {**facts, **_circumstances(backbone), **summary})
        check_tensors(weights, wanted)
        check_effect(adapted, backbone, checkpoint, new)


def _config(adapted: Any, wanted: list[str]) -> dict[str, Any]:
    """PEFT's own config, its sets sorted (PEFT writes them in hash order) and no path of this machine in it."""
    config = adapted.peft_config["default"].to_dict() | {"target_modules": wanted, "inference_mode": True}
    return {
        key: sorted(value) if isinstance(value, set) else value
        for key, value in config.items()
        if key != "base_model_name_or_path"
    }


def check_tensors(weights: Mapping[str, torch.Tensor], wanted: list[str]) -> None:
    """The first half of the gate: every wanted module and no other, nothing empty, not finite or untrained."""
    names = {f"{_PREFIX}{module}.lora_{side}.weight" for module in wanted for side in "AB"}
    if names != weights.keys():
        raise AdapterError(f"the adapter's tensors differ from the wanted ones by {sorted(names ^ weights.keys())}")
    bad = [name for name, tensor in weights.items() if tensor.numel() == 0 or not tensor.isfinite().all()]
    if bad:
        raise AdapterError(f"empty or not finite: {bad}")
    if all((tensor == 0).all() for name, tensor in weights.items() if ".lora_B." in name):
        raise AdapterError("every lora_B is zero: nothing was learnt")


@torch.inference_mode()
def check_effect(adapted: Any, backbone: Backbone, checkpoint: Path, folder: Path) -> None:
    """The second half: read back by the loader that decoding uses, the adapter changes the logits."""
    dtype = str(next(backbone.model.get_input_embeddings().parameters()).dtype).removeprefix("torch.")
    probe = [backbone.eos_id, backbone.mask_id, backbone.mask_id, backbone.eos_id]
    with adapted.disable_adapter():
        before = _logits(adapted.get_base_model(), probe)
    reloaded = load_backbone(checkpoint, backbone.family.name, device=str(backbone.device), dtype=dtype, adapter=folder)
    if torch.equal(before, _logits(reloaded.model, probe)):
        raise AdapterError("reloading the adapter leaves the logits as they were")


def _logits(model: Any, tokens: list[int]) -> torch.Tensor:
    return model.lm_head(hidden_states(model, pack([tokens], model.device)))
