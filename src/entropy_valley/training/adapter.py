"""A trained adapter as a folder: saved in PEFT's format, checked, and there only when it passed."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from entropy_valley import files
from entropy_valley.backbone.adapters import FACTS, write_adapter
from entropy_valley.backbone.checkpoint import facts as origin
from entropy_valley.backbone.loading import Backbone, load_backbone
from entropy_valley.backbone.packing import hidden_states, pack
from entropy_valley.backbone.peft_format import Adapter, from_peft
from entropy_valley.training import lora
from entropy_valley.training.reports import history_csv

LOSSES = "losses.csv"
PACKAGES = ("torch", "transformers", "peft", "deepspeed")


class AdapterError(RuntimeError):
    """An adapter that would not do what its name says."""


def tensors(adapted: Any) -> dict[str, torch.Tensor]:
    """The adapters' tensors under PEFT's names, float32, on the CPU."""
    from peft import get_peft_model_state_dict

    state = get_peft_model_state_dict(adapted)
    return {name: state[name].detach().float().cpu().contiguous() for name in sorted(state)}


def trained(adapted: Any, backbone: Backbone, checkpoint: Path) -> Adapter:
    """The adapter of a PEFT model around ``backbone``, which was read from the folder ``checkpoint``."""
    settings = adapted.peft_config["default"].to_dict()
    settings["base_model_name_or_path"] = origin(checkpoint).get("repository")  # never a path of this machine
    return from_peft(tensors(adapted), settings, backbone.family, place="the trained adapter")


def versions() -> dict[str, str]:
    """The versions of the packages that decide the numbers of a training."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def is_finished(folder: Path, identity: Mapping[str, Any], backbone: Backbone) -> bool:
    """Whether ``folder`` already holds this very adapter: a config that was changed and changed back costs nothing."""
    if not (folder / FACTS).exists():
        return False
    card, wanted = files.read_json(folder / FACTS), {**identity, **_circumstances(backbone)}
    return all(card.get(key) == value for key, value in wanted.items())


def _circumstances(backbone: Backbone) -> dict[str, Any]:
    return {"backbone_digest": backbone.digest, "family": backbone.family.name, "versions": versions()}


def save(
    adapted: Any,
    backbone: Backbone,
    checkpoint: Path,
    folder: Path,
    facts: Mapping[str, Any],
    history: Sequence[Sequence[float]],
) -> None:
    """Write ``adapter_model.safetensors``, ``adapter_config.json``, ``adapter.json`` and ``losses.csv``, then let the
    gate judge.

    ``backbone`` is the adapted one and ``checkpoint`` its folder. ``facts`` are added to ``adapter.json``, and
    ``history`` holds the values of ``losses.csv`` by step: nothing that differs from run to run. The folder appears
    whole and only after the gate; AdapterError otherwise.
    """
    change = trained(adapted, backbone, checkpoint)
    with files.atomic_folder(folder) as new:
        write_adapter(change, new)
        card = {**facts, **_circumstances(backbone), **summary(change, backbone.model)}
        files.write_json(new / FACTS, card)
        files.write_text(new / LOSSES, history_csv(history))
        check_modules(change, lora.targets(backbone.model, backbone.family))
        check_values(change)
        check_effect(*_logits_before_and_after(adapted, backbone, checkpoint, new))


def summary(adapter: Adapter, model: Any) -> dict[str, Any]:
    """What ``adapter.json`` says of any adapter, trained here or given."""
    return {
        "adapter_digest": adapter.digest,
        "trainable_parameters": adapter.parameters,
        "vocabulary": model.config.vocab_size,
    }


def check_modules(adapter: Adapter, wanted: list[str]) -> None:
    """The first part of the gate: every wanted module and no other is adapted."""
    differing = sorted(set(wanted) ^ adapter.pairs.keys())
    if differing:
        raise AdapterError(f"the adapted modules differ from the wanted ones by {differing}")


def check_values(adapter: Adapter) -> None:
    """The second part: nothing empty, not finite or untrained."""
    bad = [
        f"{module}.lora_{side}"
        for module, pair in adapter.pairs.items()
        for side, tensor in zip("AB", pair, strict=True)
        if tensor.numel() == 0 or not tensor.isfinite().all()
    ]
    if bad:
        raise AdapterError(f"empty or not finite: {', '.join(bad)}")
    if not any(down.any() and up.any() for down, up in adapter.pairs.values()):
        raise AdapterError("every lora_B is zero, or its lora_A: nothing was learnt")


def check_effect(before: torch.Tensor, after: torch.Tensor) -> None:
    """The third: read back by the loader that decoding uses, the adapter changes the logits."""
    if torch.equal(before, after):
        raise AdapterError("the adapter leaves the logits as they were")


@torch.inference_mode()
def probe_logits(model: Any, eos_id: int) -> torch.Tensor:
    """The logits of a few tokens, (4, vocabulary): any do, and an autoregressive family has no mask."""
    return model.lm_head(hidden_states(model, pack([[eos_id, 0, 1, eos_id]], model.device)))


def _logits_before_and_after(
    adapted: Any, backbone: Backbone, checkpoint: Path, folder: Path
) -> tuple[torch.Tensor, torch.Tensor]:
    dtype = str(next(backbone.model.get_input_embeddings().parameters()).dtype).removeprefix("torch.")
    with adapted.disable_adapter():
        before = probe_logits(adapted.get_base_model(), backbone.eos_id)
    reloaded = load_backbone(checkpoint, backbone.family.name, device=str(backbone.device), dtype=dtype, adapter=folder)
    return before, probe_logits(reloaded.model, backbone.eos_id)
