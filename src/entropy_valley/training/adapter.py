"""Saving a trained adapter: written in PEFT's format, checked, and kept only if it passes the checks."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from entropy_valley import files, folders, provenance
from entropy_valley.backbone.adapters import (
    FACTS,
    facts,
    merge_adapter,
    read_adapter,
    require_digest,
    write_adapter,
)
from entropy_valley.backbone.checkpoint import facts as checkpoint_facts
from entropy_valley.backbone.families import find_family
from entropy_valley.backbone.loading import Backbone
from entropy_valley.backbone.packing import hidden_states, pack
from entropy_valley.backbone.peft_format import Adapter, from_peft
from entropy_valley.errors import InputError
from entropy_valley.training import lora
from entropy_valley.training.reports import history_csv

LOSSES = "losses.csv"
PACKAGES = ("torch", "transformers", "peft", "deepspeed")


class AdapterError(RuntimeError):
    """An adapter that fails a check."""


def tensors(adapted: Any) -> dict[str, torch.Tensor]:
    """The adapter's tensors under PEFT's names, float32, on the CPU."""
    from peft import get_peft_model_state_dict

    state = get_peft_model_state_dict(adapted, save_embedding_layers=False)  # not the LM head's own weight
    return {name: state[name].detach().float().cpu().contiguous() for name in sorted(state)}


def trained(adapted: Any, backbone: Backbone, checkpoint: Path) -> Adapter:
    """The adapter of a PEFT model around ``backbone``; the folder ``checkpoint`` holds the backbone."""
    settings = adapted.peft_config["default"].to_dict()
    settings["base_model_name_or_path"] = checkpoint_facts(checkpoint).get("repository")  # never a local path
    return from_peft(tensors(adapted), settings, backbone.family, place="the trained adapter")


def versions() -> dict[str, str]:
    """The versions of the packages that training numbers depend on."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def is_finished(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Whether ``folder`` already holds this adapter, whole: a job that starts again costs nothing.

    Packages of other versions than then are no reason to train again.
    """
    known = facts(folder)
    if any(known.get(key) != value for key, value in identity.items()) or not (folder / LOSSES).exists():
        return False
    if not provenance.stands(folder / FACTS):
        return False
    try:
        return read_adapter(folder, find_family(known["family"])).digest == known["adapter_digest"]
    except InputError:  # cut or damaged
        return False


def save(
    adapted: Any,
    backbone: Backbone,
    checkpoint: Path,
    folder: Path,
    more: Mapping[str, Any],
    history: Sequence[Sequence[float]],
    targets: str = "blocks",
) -> None:
    """Write ``adapter_model.safetensors``, ``adapter_config.json``, ``adapter.json`` and ``losses.csv``; check them.

    ``backbone`` is the adapted one and ``checkpoint`` its folder. ``more`` is added to ``adapter.json``; ``history``
    holds the values of ``losses.csv`` by step, and ``targets`` is that of :class:`.settings.Lora`. Nothing that differs
    from run to run is written. Afterwards the weights of ``backbone`` are the merged ones. Raises AdapterError, and
    writes no folder, if the adapter fails a check.
    """
    change = trained(adapted, backbone, checkpoint)
    with folders.atomic(folder) as new:
        write_adapter(change, new)
        origin = {"backbone_digest": backbone.digest, "family": backbone.family.name, "versions": versions()}
        files.write_json(new / FACTS, {**more, **origin, **summary(change, backbone.model)})
        files.write_text(new / LOSSES, history_csv(history))
        check_modules(change, lora.targets(backbone.model, backbone.family, targets))
        check_values(change)
        check_effect(adapted, backbone, new)


def summary(adapter: Adapter, model: Any) -> dict[str, Any]:
    """The fields that ``adapter.json`` has for every adapter, trained here or given."""
    return {
        "adapter_digest": adapter.digest,
        "trainable_parameters": adapter.parameters,
        "vocabulary": model.config.vocab_size,
    }


def check_modules(adapter: Adapter, wanted: list[str]) -> None:
    """First check: the wanted modules and no others are adapted."""
    differing = sorted(set(wanted) ^ adapter.pairs.keys())
    if differing:
        raise AdapterError(f"the adapted modules differ from the wanted ones by {differing}")


def check_values(adapter: Adapter) -> None:
    """Second check: no tensor is empty or not finite, and the adapter is trained."""
    bad = [
        f"{module}.lora_{side}"
        for module, pair in adapter.pairs.items()
        for side, tensor in zip("AB", pair, strict=True)
        if tensor.numel() == 0 or not tensor.isfinite().all()
    ]
    if bad:
        raise AdapterError(f"empty or not finite: {', '.join(bad)}")
    if not any(down.any() and up.any() for down, up in adapter.pairs.values()):
        raise AdapterError("every lora_B is zero, or its lora_A: the adapter is not trained")


@torch.inference_mode()
def probe_logits(model: Any, eos_id: int) -> torch.Tensor:
    """The logits of four tokens, (4, vocabulary)."""
    return model.lm_head(hidden_states(model, pack([[eos_id, 0, 1, eos_id]], model.device)))


def check_effect(adapted: Any, backbone: Backbone, folder: Path) -> None:
    """Third check: read from ``folder`` and merged as decoding merges it, the adapter changes the logits.

    It is merged into ``backbone`` itself: loading a second one would take as much memory and time again.
    """
    written = require_digest(read_adapter(folder, backbone.family), facts(folder), folder)
    with adapted.disable_adapter():
        before = probe_logits(backbone.model, backbone.eos_id)
        merge_adapter(backbone.model, written)
        after = probe_logits(backbone.model, backbone.eos_id)
    if torch.equal(before, after):
        raise AdapterError("the adapter does not change the logits")
