"""Released weights into a stock model: all headers first, then each tensor once, in the model's dtype on its device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch

from entropy_valley.backbone import checkpoint
from entropy_valley.backbone.families import Family
from entropy_valley.errors import InputError, listed

_COMPUTED = ".rotary_emb.inv_freq"  # older exports carry the rotary table, which is computed


@dataclass(frozen=True)
class _Stored:
    """A tensor as the header of its file has it."""

    path: Path
    shape: tuple[int, ...]


def fill(model: Any, family: Family, folder: Path, device: str) -> None:
    """Give a model on ``meta`` the weights of a checkpoint, in the model's dtype on ``device``.

    Nothing is mapped: the weights do not change or end with their files. The host holds no more than the model's
    part on it and one tensor as stored. Raises InputError where :func:`check` does, and for what no checkpoint fills.
    """
    stored = check(model, family, folder)
    parameters = {family.released_name(name): (name, parameter) for name, parameter in model.named_parameters()}
    # A tensor is there twice while its dtype changes: the largest come first, when the model is still small.
    for name in sorted(stored, key=lambda name: -prod(stored[name].shape)):
        stock, parameter = parameters[name]
        _set(model, stock, _read(stored[name].path, name, device, parameter.dtype))
    # The rotary table is no tensor of a checkpoint: on `meta` it was never computed.
    model.model.rotary_emb = type(model.model.rotary_emb)(config=model.config, device=device)
    _require_filled(model, family, folder)


def check(model: Any, family: Family, folder: Path) -> dict[str, _Stored]:
    """Where each of the model's tensors lies, by released name, as the files' headers say; no weight is read.

    Raises one InputError that names every file that is missing or damaged and every tensor that is in two files, not
    where the index has it, not in the index, missing, extra, or of another shape.
    """
    wanted = {family.released_name(name): tuple(tensor.shape) for name, tensor in model.named_parameters()}
    found, unreadable = _headers(folder)
    index = {name: file for name, file in checkpoint.read_index(folder).items() if not name.endswith(_COMPUTED)}
    problems = _problems(wanted, found, index, unreadable)
    said = "; ".join(f"{what}: {listed(names)}" for what, names in problems.items() if names)
    if said:
        raise InputError(folder, said, f"This is not a whole {family.name} checkpoint: fetch it again.")
    return {name: place for name, (place,) in found.items()}


def _headers(folder: Path) -> tuple[dict[str, list[_Stored]], dict[str, str]]:
    """Every place of each tensor, and by file why it could not be read."""
    found, unreadable = defaultdict(list), {}
    for path in checkpoint.shards(folder):
        try:
            for name, shape in checkpoint.read_shapes(path).items():
                if not name.endswith(_COMPUTED):
                    found[name].append(_Stored(path, shape))
        except InputError as error:
            unreadable[path.name] = error.problem
    return found, unreadable


def _problems(
    wanted: Mapping[str, tuple[int, ...]],
    found: Mapping[str, Sequence[_Stored]],
    index: Mapping[str, str],
    unreadable: Mapping[str, str],
) -> dict[str, list[str]]:
    """What does not fit, by kind: shapes by name, places by name, files by name as the index has them, bad files."""
    return {
        "files": [f"{file} is {problem}" for file, problem in unreadable.items()],
        "in two files": [f"{name} ({', '.join(_files(places))})" for name, places in found.items() if len(places) > 1],
        "not in the file that the index names": [
            f"{name} ({file})"
            for name, file in index.items()
            if file not in unreadable and file not in _files(found.get(name, []))
        ],
        "not in the index": [name for name in found if index and name not in index],
        "missing": [name for name in wanted if name not in found and name not in index],
        "extra": [name for name in found if name not in wanted],
        "of another shape": [
            f"{name} is {place.shape}, not {wanted[name]}"
            for name, places in found.items()
            for place in places
            if place.shape != wanted.get(name, place.shape)
        ],
    }


def _files(places: Sequence[_Stored]) -> list[str]:
    return [place.path.name for place in places]


def _read(path: Path, name: str, device: str, dtype: torch.dtype) -> torch.Tensor:
    with checkpoint.open_shard(path) as shard:
        # First the device, then the dtype: in one call torch would convert on the host, into a second tensor there.
        return shard.get_tensor(name).to(device).to(dtype)


def _require_filled(model: Any, family: Family, folder: Path) -> None:
    """Two names of one weight, and buffers that are computed: neither is a tensor of a checkpoint."""
    tensors = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    empty = [name for name, tensor in tensors if tensor.is_meta]
    if empty:
        raise InputError(
            folder,
            f"nothing in it fills {listed(empty)} of {family.architecture}",
            f"The family {family.name} needs a stock class without tied weights and without buffers of its own.",
        )


def _set(model: Any, name: str, tensor: torch.Tensor) -> None:
    module, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(module), leaf, torch.nn.Parameter(tensor, requires_grad=False))
