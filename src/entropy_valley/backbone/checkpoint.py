"""Reading and writing checkpoint folders in the released layouts, safetensors only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.backbone.families import Family
from entropy_valley.errors import InputError

INDEX = "model.safetensors.index.json"
MANIFEST = "checkpoint.json"
CONTENT = (
    "*.safetensors",
    "config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
)


def shards(folder: Path) -> list[Path]:
    """The safetensors files of a checkpoint, in name order; pickles are refused."""
    if (folder / INDEX).exists():
        names = sorted(set(files.read_json(folder / INDEX)["weight_map"].values()))
    else:
        names = sorted(path.name for path in folder.glob("*.safetensors"))
    if not names:
        pickled = sorted(path.name for path in folder.glob("*.bin"))
        raise InputError(
            folder,
            f"no safetensors files{f', only {pickled[0]}' if pickled else ''}",
            "Pickled weights are never loaded: convert them to safetensors, or fetch a revision that has them.",
        )
    return [folder / name for name in names]


def tensors(folder: Path, device: str = "cpu") -> Iterator[tuple[str, Any]]:
    """Every (released name, tensor) of a checkpoint, one at a time."""
    for path in shards(folder):
        yield from read_shard(path, device)


def read_shard(path: Path, device: str = "cpu") -> Iterator[tuple[str, Any]]:
    """Every (name, tensor) of a safetensors file, one at a time; InputError where it is cut or damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device=device) as shard:
            for name in shard.keys():  # noqa: SIM118 - not a mapping
                yield name, shard.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise InputError(
            path, f"not a whole safetensors file ({error})", "Remove it and fetch or make it again."
        ) from None


def config_arguments(folder: Path, family: Family) -> dict[str, Any]:
    """Keyword arguments of the stock config; every field the stock class takes for granted is checked."""
    place = folder / "config.json"
    released = files.read_json(place)
    expected = {"model_type": family.model_type, **family.fixed}
    wrong = [
        f"{key} is {released[key]!r}, not {value!r}"
        for key, value in expected.items()
        if released.get(key, value) != value
    ]
    if wrong:
        raise InputError(
            place, "; ".join(wrong), f"Name the family of this checkpoint; {family.name} computes something else."
        )
    try:
        return family.to_stock(released)
    except KeyError as error:
        raise InputError(place, f"no field {error}", f"A {family.name} checkpoint has one.") from None


def adapter_card(adapter: Path, backbone_digest: str) -> dict[str, Any]:
    """What ``adapter.json`` says; InputError where it was trained on another backbone."""
    card = files.read_json(adapter / "adapter.json")
    if card["backbone_digest"] != backbone_digest:
        raise InputError(
            adapter,
            f"trained on backbone {card['backbone_digest']}, not {backbone_digest}",
            "Use the backbone it was trained on, or train again.",
        )
    return card


def checkpoint_digest(folder: Path) -> str:
    """One digest of all weight and tokenizer files; read from the manifest where the folder has one."""
    return manifest(folder)["digest"]


def manifest(folder: Path) -> dict[str, Any]:
    """What ``checkpoint.json`` says, or would say: the digest of each file and of all of them."""
    if (folder / MANIFEST).exists():
        return files.read_json(folder / MANIFEST)
    remembered = files.cache_folder() / "digests" / f"{files.digest(_stamps(folder))}.json"
    if not remembered.exists():
        files.write_json(remembered, _digests(folder))
    return files.read_json(remembered)


def write_checkpoint(model: Any, family: Family, tokenizer: Any, folder: Path) -> None:
    """Write a stock model in the family's released layout: names, config, tokenizer and a manifest of digests."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {family.released_name(name): tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        **family.to_released(model.config),
        "model_type": family.model_type,
        "mask_token_id": tokenizer.mask_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(folder)
    write_manifest(folder, family)


def write_manifest(folder: Path, family: Family, **facts: Any) -> None:
    """Write ``checkpoint.json``: the digest of each file, of all of them, and what else is known (revision, …)."""
    files.write_json(folder / MANIFEST, {**_digests(folder), "family": family.name, **facts})


def _digests(folder: Path) -> dict[str, Any]:
    digests = {path.name: files.file_digest(path) for path in _content(folder)}
    return {"files": digests, "digest": files.digest(digests)}


def _stamps(folder: Path) -> list[list[Any]]:
    """What tells whether a user's own folder is as it was hashed: a 16 GB checkpoint is read once, not in every job."""
    stats = [(path.resolve(), path.stat()) for path in _content(folder)]
    return [[str(path), stat.st_size, stat.st_mtime_ns] for path, stat in stats]


def _content(folder: Path) -> list[Path]:
    """The files that decide what the model computes and how text becomes tokens."""
    return [path for pattern in CONTENT for path in sorted(folder.glob(pattern))]
