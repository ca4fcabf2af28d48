"""Checkpoint folders in the released layouts: read and written, as safetensors only."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from entropy_valley import digest_cache, files, provenance
from entropy_valley.backbone.families import Family
from entropy_valley.errors import InputError, listed

INDEX = "model.safetensors.index.json"
MANIFEST = "checkpoint.json"
MANIFEST_HELP = "how the files of the checkpoint were when it was fetched; else they are as they are"
CONTENT = (
    "*.safetensors", "config.json", "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt",
)  # fmt: skip
# The first match counts: trainers leave other ``.bin`` files beside the weights.
PICKLES = ("pytorch_model*.bin", "*.bin", "*.pt", "*.pth", "*.ckpt")
# Arguments: FOLDER PATTERN. Tensors are copied: safetensors refuses tensors that share memory.
CONVERSION = (
    'python -c "import pathlib, sys, torch, safetensors.torch as s; '
    "load = lambda path: torch.load(path, map_location='cpu', weights_only=True).items(); "
    "[s.save_file({k: v.contiguous().clone() for k, v in load(path)}, path.with_suffix('.safetensors')) "
    'for path in pathlib.Path(sys.argv[1]).glob(sys.argv[2])]"'
)


def shards(folder: Path) -> list[Path]:
    """The safetensors files that a checkpoint should have, in name order; pickles are refused."""
    index = read_index(folder)
    if index:
        return [folder / name for name in sorted(set(index.values()))]
    refuse_pickles([path.name for path in folder.glob("*")], folder, folder)
    return sorted(folder.glob("*.safetensors"))


def read_index(folder: Path) -> dict[str, str]:
    """The file of each tensor, from ``model.safetensors.index.json``; {} without one."""
    if not (folder / INDEX).exists():
        return {}
    content = files.read_json(folder / INDEX)
    index = content.get("weight_map") if isinstance(content, dict) else None
    names = index.values() if isinstance(index, dict) else ()
    # A name with a folder in it could point outside the checkpoint.
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise InputError(folder / INDEX, "no `weight_map` from tensors to files beside it", "Fetch it again.")
    return index


def refuse_pickles(names: Iterable[str], place: object, folder: Path, first: str = "") -> None:
    """Raise InputError if the file ``names`` of ``place`` (a folder, a repository) have no safetensors.

    The error says how to convert pickles in ``folder``; ``first`` is the step before that, if ``folder`` does not exist
    yet.
    """
    beside = [name for name in names if "/" not in name]
    if fnmatch.filter(beside, "*.safetensors"):
        return
    pickles = next((pattern for pattern in PICKLES if fnmatch.filter(beside, pattern)), None)
    if pickles is None:
        raise InputError(place, "no safetensors files", "Give a whole checkpoint.")
    raise only_pickles(place, pickles, folder, first)


def only_pickles(place: object, pattern: str, folder: Path, first: str = "") -> InputError:
    """The error for weights that exist as pickles only, with the command that converts them in ``folder``."""
    return InputError(
        place,
        f"pickled weights only ({pattern}), and a pickle can run any code",
        f"If you trust it, convert it: {first}`{CONVERSION} {shlex.quote(str(folder))} '{pattern}'`",
    )


@contextlib.contextmanager
def open_shard(path: Path) -> Iterator[Any]:
    """Open a safetensors file; its tensors are read into memory. Raises InputError if it is cut or damaged.

    By default safetensors maps the file: pages then count twice while a tensor is converted, and a job ends when its
    file changes or vanishes.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", backend="pread") as shard:
            yield shard
    except FileNotFoundError:
        raise InputError(path, "missing", "Fetch or make it again.") from None
    except (SafetensorError, OSError) as error:
        raise InputError(
            path, f"not a whole safetensors file ({error})", "Remove it and fetch or make it again."
        ) from None


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of a safetensors file; no weight is read."""
    with open_shard(path) as shard:
        return {name: tuple(shard.get_slice(name).get_shape()) for name in shard.keys()}  # noqa: SIM118


def read_shard(path: Path) -> Iterator[tuple[str, Any]]:
    """Every (name, tensor) of a safetensors file, one at a time."""
    with open_shard(path) as shard:
        for name in shard.keys():  # noqa: SIM118 - not a mapping
            yield name, shard.get_tensor(name)


def require_whole(folder: Path) -> None:
    """Raise InputError if a file of weights is cut, or if the folder is not as it was when it was fetched or made."""
    for path in shards(folder):
        read_shapes(path)
    record = provenance.read_record(provenance.record_path(folder / MANIFEST))
    if record is not None and not record.describes(folder):
        problem = "its files are not those that were fetched or made"
        raise InputError(folder, problem, "Remove the folder and run Snakemake again, which fetches or makes it.")


def checkpoint_digest(folder: Path) -> str:
    """One digest of all weight and tokenizer files."""
    return manifest(folder)["digest"]


def manifest(folder: Path) -> dict[str, Any]:
    """The content of ``checkpoint.json``, and the digest of each file and of all of them.

    The digests are of the files as they are now: further training leaves an old ``checkpoint.json``. Raises InputError
    for a file that is not as the job wrote it that made the checkpoint here.
    """
    found = _digests(folder)
    if record := provenance.read_record(provenance.record_path(folder / MANIFEST)):
        record.require(folder, found["files"])
    return {**facts(folder), **found}


def require_same(folder: Path, written: Path) -> None:
    """Raise InputError unless the files in ``folder`` are those of the manifest ``written``, which a download or the
    check of a user's own checkpoint has left. A folder that is not there is not looked at."""
    if not folder.is_dir():
        return
    known, found = files.read_json(written)["files"], _digests(folder)["files"]
    if differing := sorted(name for name in {**known, **found} if known.get(name) != found.get(name)):
        problem = f"not as {written} says: {listed(differing)}"
        remedy = f"Restore it; or remove {written}, and of a download the folder too, and run again."
        raise InputError(folder, problem, remedy)


def facts(folder: Path) -> dict[str, Any]:
    """A folder's origin from ``checkpoint.json`` (family, repository, revision, …); {} without one."""
    return files.read_json(folder / MANIFEST) if (folder / MANIFEST).exists() else {}


def is_finished(folder: Path, identity: dict[str, Any]) -> bool:
    """Whether ``folder`` holds a checkpoint whose ``checkpoint.json`` says the same, and its files are as written."""
    known = facts(folder)
    same = all(known.get(key) == value for key, value in identity.items())
    return same and any(folder.glob("*.safetensors")) and provenance.stands(folder / MANIFEST)


def write_checkpoint(model: Any, family: Family, tokenizer: Any, folder: Path) -> None:
    """Write a stock model in the family's released layout: names, config, tokenizer and ``checkpoint.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {family.released_name(name): tensor.contiguous() for name, tensor in model.state_dict().items()}
    write_tensors(weights, folder / "model.safetensors")
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


def write_tensors(tensors: dict[str, Any], path: Path) -> None:
    """Write a safetensors file with the permissions of any new file."""
    from safetensors.torch import save_file

    with files.saving(path):
        save_file(tensors, path, metadata={"format": "pt"})
    files.permit(path)


def write_manifest(folder: Path, family: Family, **facts: Any) -> None:
    """Write ``checkpoint.json``: the family and what else is known (repository, revision, …)."""
    files.write_json(folder / MANIFEST, {"family": family.name, **facts})


def _digests(folder: Path) -> dict[str, Any]:
    def compute() -> dict[str, Any]:
        digests = {path.name: files.file_digest(path) for path in _content(folder)}
        return {"files": digests, "digest": files.digest(digests)}

    return digest_cache.remembered(_content(folder), compute)


def _content(folder: Path) -> list[Path]:
    """The files that decide what the model computes and how text becomes tokens."""
    return [path for pattern in CONTENT for path in sorted(folder.glob(pattern))]
