"""Released weights into a stock model: first all headers are checked, then each tensor is read once."""

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

_COMPUTED = ".rotary_emb.inv_freq"  # some older exports store it; here it is computed


@dataclass(frozen=True)
class _Stored:
    """A tensor in the header of its file."""

    path: Path
    shape: tuple[int, ...]


def fill(model: Any, family: Family, folder: Path, device: str) -> None:
    """Give a model on ``meta`` the weights of a checkpoint, in the model's dtype on ``device``.

    Files are not mapped, so a change of a file does not change the weights. The host holds at most one stored tensor
    beside the weights that belong there. Raises InputError as :func:`check` does, and for parameters and buffers that
    no checkpoint fills.
    """
    stored = check(model, family, folder)
    parameters = {family.released_name(name): (name, parameter) for name, parameter in model.named_parameters()}
    # Converting a tensor needs memory for a second one: the largest come first, while the model is small.
    for name in sorted(stored, key=lambda name: -prod(stored[name].shape)):
        stock, parameter = parameters[name]
        _set(model, stock, _read(stored[name].path, name, device, parameter.dtype))
    # The rotary table is not in a checkpoint, and on `meta` it was not computed.
    model.model.rotary_emb = type(model.model.rotary_emb)(config=model.config, device=device)
    _require_filled(model, family, folder)


def check(model: Any, family: Family, folder: Path) -> dict[str, _Stored]:
    """The file of each of the model's tensors, by released name, from the headers; no weight is read.

    Raises one InputError that names every file that is missing or damaged, and every tensor that is missing, extra, in
    two files, of a wrong shape, or not where the index says.
    """
    wanted = {family.released_name(name): tuple(tensor.shape) for name, tensor in model.named_parameters()}
    found, unreadable = _headers(folder)
    index = {name: file for name, file in checkpoint.read_index(folder).items() if not name.endswith(_COMPUTED)}
    problems = _problems(wanted, found, index, unreadable)
    said = "; ".join(f"{what}: {listed(names)}" for what, names in problems.items() if names)
    if said:
        raise InputError(folder, said, f"This is not a whole {family.name} checkpoint: fetch or make it again.")
    return {name: place for name, (place,) in found.items()}


def _headers(folder: Path) -> tuple[dict[str, list[_Stored]], dict[str, str]]:
    """All places of each tensor, and by file the reason why it could not be read."""
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
    """Problems by kind, from the ``wanted`` shapes, the ``found`` tensors, the ``index`` and the unreadable files."""
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
        # First the device, then the dtype: one call for both would make a second tensor on the host.
        return shard.get_tensor(name).to(device).to(dtype)


def _require_filled(model: Any, family: Family, folder: Path) -> None:
    """Refuse models with tied weights or computed buffers: a checkpoint does not hold these."""
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
