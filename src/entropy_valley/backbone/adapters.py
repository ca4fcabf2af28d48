"""Adapter folders in PEFT's layout: read, written, merged or attached, exported."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entropy_valley import files, folders, provenance
from entropy_valley.backbone import checkpoint
from entropy_valley.backbone.families import Family, find_family
from entropy_valley.backbone.peft_format import Adapter, from_peft, to_peft
from entropy_valley.backbone.prompt_attention import BOTH_WAYS, attention_of
from entropy_valley.errors import InputError

if TYPE_CHECKING:
    from torch.nn import Module

WEIGHTS, SETTINGS, FACTS = "adapter_model.safetensors", "adapter_config.json", "adapter.json"
PICKLE = "adapter_model.bin"


def read_adapter(folder: Path, family: Family, model: Module | None = None) -> Adapter:
    """Read a PEFT folder whose modules have the family's stock or released names.

    Raises one InputError that lists every problem, see :func:`from_peft`.
    """
    require_weights([path.name for path in folder.glob("*")], folder)
    settings = files.read_json(folder / SETTINGS)
    return from_peft(dict(checkpoint.read_shard(folder / WEIGHTS)), settings, family, model, place=folder)


def fitting_adapter(
    folder: Path, family: Family, model: Module, backbone_digest: str, backbone: Path, attention: str = BOTH_WAYS
) -> Adapter:
    """The adapter in ``folder``, checked against the digest of the folder ``backbone``, ``model``, which may be on
    ``meta``, the ``attention`` asked of it, and the digest of its tensors in ``adapter.json``.

    Raises InputError as :func:`checked_facts`, :func:`read_adapter` and :func:`require_digest` do.
    """
    known = checked_facts(folder, backbone_digest, backbone, attention)
    return require_digest(read_adapter(folder, family, model), known, folder)


def require_weights(names: Collection[str], folder: Path, first: str = "") -> None:
    """Raise InputError if an adapter's file ``names`` have no safetensors. The error says how to convert a pickle.

    ``first`` is the step before that, for a ``folder`` that does not exist yet.
    """
    if WEIGHTS in names:
        return
    if PICKLE not in names:
        remedy = f"Remove its {FACTS} too and run again." if FACTS in names else "Give a folder that PEFT saved."
        raise InputError(folder, f"no {WEIGHTS}", remedy)
    raise checkpoint.only_pickles(folder, PICKLE, folder, first)


def write_adapter(adapter: Adapter, folder: Path, family: Family | None = None) -> None:
    """Write a PEFT folder in the released names of ``family``; without a family in stock names, our own layout."""
    tensors, settings = to_peft(adapter, family)
    checkpoint.write_tensors(tensors, folder / WEIGHTS)
    files.write_json(folder / SETTINGS, settings)


def merge_adapter(model: Module, adapter: Adapter) -> None:
    """Add scaling · B A to each adapted weight in place, in float32."""
    import torch

    for module, pair in adapter.pairs.items():
        weight = model.get_submodule(module).weight
        down, up = (tensor.to(weight.device, torch.float32) for tensor in pair)
        weight.data.copy_(weight.float() + adapter.scaling(module) * (up @ down))


def attach_adapter(model: Module, adapter: Adapter) -> None:
    """Let PEFT add scaling · B (A x) in float32 to the output of each adapted layer; no weight changes."""
    import torch
    from peft import LoraConfig, inject_adapter_in_model

    _, settings = to_peft(adapter)
    inject_adapter_in_model(LoraConfig(**settings), model, low_cpu_mem_usage=True)  # on `meta`: no random draw
    for module, pair in adapter.pairs.items():
        layer = model.get_submodule(module)
        for side, tensor in zip((layer.lora_A, layer.lora_B), pair, strict=True):
            # PEFT's own loading would round the factors to the dtype of the weights.
            side["default"].weight = torch.nn.Parameter(tensor.to(layer.weight.device), requires_grad=False)


def facts(folder: Path) -> dict[str, Any]:
    """The content of ``adapter.json``; {} without one."""
    return files.read_json(folder / FACTS) if (folder / FACTS).exists() else {}


def checked_facts(
    folder: Path, backbone_digest: str, backbone: Path | None = None, attention: str = BOTH_WAYS
) -> dict[str, Any]:
    """The content of ``adapter.json``; {} without one.

    Raises InputError if it names another backbone than the one in the folder ``backbone``, or if that is damaged; and
    if it says that the adapter was trained with another ``attention``.
    """
    known = facts(folder)
    if known.get("backbone_digest", backbone_digest) != backbone_digest:
        if backbone:
            checkpoint.require_whole(backbone)
        raise InputError(
            folder,
            f"trained on backbone {known['backbone_digest']}, not {backbone_digest}",
            "Use the backbone it was trained on, or train again.",
        )
    if known and (trained := attention_of(known.get("spec", {}))) != attention:
        raise InputError(
            folder,
            f"trained with attention {trained}, not {attention}",
            f"Use a backbone with `attention: {trained}`, or train an adapter of this one.",
        )
    return known


def require_digest(adapter: Adapter, known: dict[str, Any], folder: Path) -> Adapter:
    """The adapter. Raises InputError if its tensors are not those whose digest ``adapter.json`` has."""
    said = known.get("adapter_digest")
    if said and said != (found := adapter.digest):
        raise InputError(
            folder / WEIGHTS,
            f"its tensors have the digest {found}, but {FACTS} says {said}",
            "Remove the folder and train again; for an adapter of your own, remove its adapter.json.",
        )
    return adapter


def adapter_digest(
    folder: Path,
    family: Family,
    backbone_digest: str,
    backbone: Path | None = None,
    attention: str = BOTH_WAYS,
) -> str:
    """The digest of an adapter's tensors: from ``adapter.json``, or computed where there is none.

    Raises InputError for files that are not as the job wrote them that made the adapter here, whoever computes what
    they are read for, and as :func:`checked_facts` does.
    """
    provenance.require_whole(folder / FACTS)
    known = checked_facts(folder, backbone_digest, backbone, attention)
    return known.get("adapter_digest") or read_adapter(folder, family).digest


def export(folder: Path, out: Path, layout: str = "released", family: str | None = None) -> None:
    """Write the adapter in ``folder`` to the new folder ``out``, in ``released`` or ``stock`` names.

    ``family`` is needed only if no ``adapter.json`` names it; that file is copied. Raises InputError for a family that
    is unknown or not the adapter's, an unreadable adapter, and an existing ``out``.
    """
    if out.exists():
        raise InputError(out, "exists already", "Name a new folder.")
    known = facts(folder)
    if not (family or known.get("family")):
        raise InputError(folder, f"no {FACTS} names its family", "Name it by --family.")
    kind = find_family(family or known["family"])
    if known.get("family", kind.name) != kind.name:
        raise InputError(folder, f"of family {known['family']}, not {kind.name}", "Leave out --family.")
    adapter = require_digest(read_adapter(folder, kind), known, folder)
    with folders.atomic(out) as new:
        write_adapter(adapter, new, kind if layout == "released" else None)
        if known:
            files.write_json(new / FACTS, known)
