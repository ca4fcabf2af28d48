"""Checkpoints in the released layouts: read and written, checked against their family, loaded into a model."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from entropy_valley import files
from entropy_valley.errors import InputError, brief, listed
from entropy_valley.model.families import COMPUTED, NEW_FAMILY, STOCK_FIELDS, Config, Family, find_family
from entropy_valley.settings import Foreign, JsonObject, misfits, read_object

if TYPE_CHECKING:
    from entropy_valley.model.decoder import Decoder

# --- Checkpoint folders in the released layouts: read and written, as safetensors only.

MANIFEST, CONFIG = "checkpoint.json", "config.json"
WHOLE = "tokenizer.json"
INDEX = "model.safetensors.index.json"  # of a checkpoint in several files
REAL = ("F64", "F32", "F16", "BF16")  # the types of numbers that weights may have
# The files that decide how text becomes tokens, and what the model computes.
TOKENIZER = ("tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt")
CONTENT = (CONFIG, *TOKENIZER)
# What transformers 4 saves of a tokenizer, and what `write_checkpoint` writes beside the manifest.
WRITTEN_TOKENIZER = ("special_tokens_map.json", WHOLE, "tokenizer_config.json")
WRITTEN = (CONFIG, "model.safetensors", *WRITTEN_TOKENIZER)
PICKLES = (".bin", ".pt", ".pth", ".ckpt")


def shards(folder: Path) -> list[Path]:
    """The safetensors files of a checkpoint, in name order: those that its index names, where it has one. Raises
    InputError where it has none, or lacks one of them."""
    require_safetensors([path.name for path in folder.glob("*")], folder)
    if not (folder / INDEX).exists():
        return [files.regular(path) for path in sorted(folder.glob("*.safetensors"))]
    named = read_object(folder / INDEX, Index)["weight_map"].values()
    return [files.regular(folder / name) for name in sorted({Path(name).name for name in named})]  # none of elsewhere


def require_safetensors(names: Iterable[str], place: Path | str) -> None:
    """Raise InputError if the file ``names`` of a checkpoint or an adapter, a folder's or a repository's, have none."""
    endings = {Path(name).suffix for name in names}
    if ".safetensors" in endings:
        return
    if endings.isdisjoint(PICKLES):
        raise InputError(place, "no safetensors files", "Give a whole checkpoint or adapter.")
    remedy = "If you trust it, convert it as docs/models_and_data.md says, and name the folder."
    raise InputError(place, "pickled weights only, and a pickle can run any code", remedy)


class Index(Foreign):
    """``model.safetensors.index.json``: the file of each tensor."""

    weight_map: dict[str, str]


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
    except (SafetensorError, OSError) as error:
        remedy = "Remove it and fetch or make it again."
        raise InputError(path, f"not a whole safetensors file ({error})", remedy) from None


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of a safetensors file; no weight is read. Raises InputError for whole numbers, such as
    quantised weights, whose scale is elsewhere, and for complex ones."""
    with open_shard(path) as shard:
        parts = {name: shard.get_slice(name) for name in shard.keys()}  # noqa: SIM118
        others = [f"{name} ({part.get_dtype()})" for name, part in parts.items() if part.get_dtype() not in REAL]
        if others:
            raise InputError(path, f"not in floating point: {listed(others)}", "Give weights that are not quantised.")
        return {name: tuple(part.get_shape()) for name, part in parts.items()}


def checkpoint_digest(folder: Path) -> str:
    """One digest of all weight and tokenizer files."""
    return manifest(folder)["digest"]


def manifest(folder: Path) -> JsonObject:
    """The content of ``checkpoint.json``, and the digest of each file and of all of them, as they are now."""
    content = shards(folder) + [path for pattern in CONTENT for path in sorted(folder.glob(pattern))]
    with ThreadPoolExecutor() as pool:  # a released checkpoint has 16 GB
        digests = dict(zip([path.name for path in content], pool.map(files.digest_once, content), strict=True))
    return {**read_origin(folder), "files": digests, "digest": files.digest(digests)}


class Origin(Foreign):
    """``checkpoint.json``."""

    family: str | None = None
    repository: str | None = None
    revision: str | None = None


def read_origin(folder: Path) -> JsonObject:
    """A folder's origin from ``checkpoint.json`` (family, repository, revision, …); {} without one."""
    return read_object(folder / MANIFEST, Origin) if (folder / MANIFEST).exists() else {}


def write_checkpoint(model: Any, family: Family, tokenizer: Any, folder: Path) -> None:
    """Write a stock model in the family's released layout: names, config, tokenizer and ``checkpoint.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    # A tied head is no parameter of its own.
    weights = {family.released_name(name): one.detach().contiguous() for name, one in model.named_parameters()}
    write_tensors(weights, folder / "model.safetensors")
    config = {
        **family.to_released(model.config),
        "model_type": family.model_type,
        "mask_token_id": tokenizer.mask_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(folder)
    write_manifest(folder, family)


def write_tensors(tensors: dict[str, Any], path: Path) -> None:
    """Write a safetensors file."""
    from safetensors.torch import save

    with files.naming(path):  # Python writes it: an error of the disk is an OSError, the permissions are the usual ones
        path.write_bytes(save(tensors, metadata={"format": "pt"}))


def write_manifest(folder: Path, family: Family, **facts: Any) -> None:
    """Write ``checkpoint.json``: the family and other ``facts`` (repository, revision, …)."""
    files.write_json(folder / MANIFEST, {"family": family.name, **facts})


# --- A checkpoint's config and special tokens, checked against its family and its release.


def config_arguments(folder: Path, family: Family) -> dict[str, Any]:
    """Keyword arguments of the stock config, from ``config.json``.

    Raises one InputError that names every field with which the checkpoint computes another function than its family.
    """
    if family.is_stock:
        return _stock_arguments(folder)
    config = _config(folder, family)
    arguments: dict[str, Any] = {}
    remedy = f"Name the family of this checkpoint, or fetch it again: {family.name} is another model; {NEW_FAMILY}."
    problems = _differences(config, {"model_type": family.model_type})
    if not problems:  # else most fields differ
        problems, not_computed = _differences(config, family.fixed), _differences(config, COMPUTED)
        if not_computed:
            remedy = "The decoder does not compute this: docs/models_and_data.md says what it computes."
        try:
            arguments = family.to_stock(config)
        except KeyError as error:
            problems.append(f"no field {error}")
        else:
            problems += misfits(Config, arguments)
        problems += not_computed
    if problems:
        raise InputError(folder / CONFIG, "; ".join(dict.fromkeys(problems)), remedy)
    return arguments


def _stock_arguments(folder: Path) -> dict[str, Any]:
    """What the config class of transformers says of a checkpoint under the stock names."""
    from transformers import AutoConfig

    with files.readable(folder / CONFIG, "config", "Give the checkpoint of a class of transformers."):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    arguments = {name: getattr(config, name, None) for name in STOCK_FIELDS}
    if missing := [name for name in ("vocab_size", "hidden_size", "max_position_embeddings") if not arguments[name]]:
        raise InputError(folder / CONFIG, f"has no {' and no '.join(missing)}", "Give another checkpoint.")
    return arguments


def _differences(config: JsonObject, fixed: JsonObject) -> list[str]:
    """Fields with another value than the ``fixed`` one; where a field is missing, stock classes have that."""
    return [
        f"{key} is {brief(repr(config[key]), 60)}, not {value!r}"
        for key, value in fixed.items()
        if key in config and config[key] != value
    ]


def load_tokenizer(folder: str | Path, family: Family) -> Any:
    """The checkpoint's own tokenizer, of transformers, without remote code.

    Without a ``tokenizer.json`` it is made by the family's tokenizer class. Raises InputError where the files for that
    are missing, and for files of which no tokenizer can be made.
    """
    import transformers

    folder, kind = Path(folder), transformers.PreTrainedTokenizerFast
    for pattern in (*TOKENIZER, CONFIG, "chat_template*"):  # transformers reads these
        for path in folder.glob(pattern):
            files.regular(path, files.MOST)
    wanted = [WHOLE]
    if family.tokenizer_class and not (folder / WHOLE).exists():
        kind = getattr(transformers, family.tokenizer_class)
        wanted = [name for name in kind.vocab_files_names.values() if name != WHOLE]
    remedy = "Copy the released tokenizer files into this folder, or make the checkpoint again."
    if absent := [name for name in wanted if not (folder / name).exists()]:
        raise InputError(folder, f"no tokenizer: no {' and no '.join(absent)}", remedy)
    with files.readable(folder / WHOLE, "tokenizer", remedy):
        return kind.from_pretrained(folder, local_files_only=True)


class SpecialIds(NamedTuple):
    """The ids of special tokens in a tokenizer; None: the family has no such token."""

    eos: int
    mask: int | None
    pad: int | None
    bos: int | None


def special_ids(folder: Path, family: Family, tokenizer: Any) -> SpecialIds:
    """The ids of the special tokens of a checkpoint. Raises one InputError that names every token that the tokenizer or
    the model does not have, or whose id differs from ``config.json`` or from a release of the family with a vocabulary
    of the same size."""
    tokens = {"eos": family.eos_token or tokenizer.eos_token, "pad": family.pad_token, "bos": family.bos_token}
    # A mask token that the tokenizer itself declares has priority.
    tokens["mask"] = None if family.causal else tokenizer.mask_token or family.mask_token
    config = _config(folder, family)
    # No BOS from config.json: Dream's config keeps Qwen2's BOS, but its tokenizer has another one.
    expected = {f"{CONFIG} says": {kind: config.get(f"{kind}_token_id") for kind in ("mask", "eos", "pad")}}
    if family.is_stock:
        tokens["eos"] = tokens["eos"] or tokenizer.sep_token
        tokens["bos"] = tokens["bos"] or tokenizer.bos_token or tokenizer.cls_token
        expected = {}  # the class writes a default of its own into its config
    vocabulary = tokenizer.get_vocab()
    ids = {kind: vocabulary.get(token) for kind, token in tokens.items()}
    size = config[family.fields["vocab_size"]]
    for release in family.releases:
        if release.config.get("vocab_size") == size:
            expected[f"{release.repository} has"] = release.ids
    needed = ["eos"] if family.causal else ["eos", "mask"]
    problems = [f"declares no {kind} token" for kind in needed if not tokens[kind]]
    for token in (*tokens.values(), *family.chat_tokens):
        if token is not None and token not in vocabulary:
            problems.append(f"no token {token!r}")
    for origin, values in expected.items():
        for kind, value in values.items():
            known = value if isinstance(value, list) else [value]
            if None not in (value, ids[kind]) and ids[kind] not in known:
                problems.append(f"{kind} id is {ids[kind]}, {origin} {brief(value)}")
    if (last := max(vocabulary.values(), default=0)) >= size:
        problems.append(f"a token has id {last}, but the model has {size} embeddings")
    if problems:
        remedy = "Use the tokenizer that was released with the checkpoint, and name the checkpoint's family."
        raise InputError(folder, f"tokenizer: {'; '.join(problems)}", remedy)
    return SpecialIds(**ids)


def _config(folder: Path, family: Family) -> JsonObject:
    """``config.json`` over the family's defaults for fields that it leaves out."""
    config = {**family.defaults, **read_object(folder / CONFIG)}
    # Of transformers 5, whose classes read it in place of `rope_theta` and `rope_scaling`.
    rotation = config.get("rope_parameters") or {}
    rotation = rotation if isinstance(rotation, dict) else {"rope_type": rotation}
    if scaling := {key: value for key, value in rotation.items() if value != "default" and key != "rope_theta"}:
        config["rope_scaling"] = scaling
    if "rope_theta" in rotation:
        config[family.fields["rope_theta"]] = rotation["rope_theta"]
    return config


@dataclass(frozen=True)
class Checkpoint:
    """What is known of a checkpoint without its weights: ``arguments`` are those of its stock config."""

    folder: Path
    family: Family
    arguments: JsonObject
    tokenizer: Any
    ids: SpecialIds

    @classmethod
    def read(cls, folder: str | Path, family: str) -> Self:
        """From the config and the tokenizer of a folder. Raises InputError where they do not fit the family."""
        folder, kind = Path(folder), find_family(family)
        arguments, tokenizer = config_arguments(folder, kind), load_tokenizer(folder, kind)
        return cls(folder, kind, arguments, tokenizer, special_ids(folder, kind, tokenizer))

    @property
    def context(self) -> int:
        """The largest number of tokens of prompt and canvas together."""
        return self.arguments["max_position_embeddings"]

    @functools.cached_property
    def digest(self) -> str:
        """Of all weight and tokenizer files."""
        return checkpoint_digest(self.folder)


# --- Released weights into a model: first all headers are checked, then each tensor is read once.

_COMPUTED = ".rotary_emb.inv_freq"  # some older exports store it; here it is computed


def fill(model: Decoder, family: Family, folder: Path, device: str) -> None:
    """Give a model on ``meta`` the weights of a checkpoint, in the model's dtype on ``device``.

    Files are not mapped, so a change of a file does not change the weights. The host holds at most one stored tensor
    beside the weights that belong there. Raises InputError as :func:`check` does.
    """
    import torch

    stored = check(model, family, folder)
    # Converting a tensor needs memory for a second one: the largest come first, while the model is small.
    for stock, empty in sorted(model.named_parameters(), key=lambda pair: -pair[1].numel()):
        (name, path), (module, _, leaf) = stored[stock], stock.rpartition(".")
        with open_shard(path) as shard:
            # First the device, then the dtype: one call for both would make a second tensor on the host.
            tensor = shard.get_tensor(name).to(device).to(empty.dtype)
        setattr(model.get_submodule(module), leaf, torch.nn.Parameter(tensor, requires_grad=False))
    model.tie()


def check(model: Decoder, family: Family, folder: Path) -> dict[str, tuple[str, Path]]:
    """The released name and the file of each of the model's tensors, from the headers; no weight is read.

    Raises InputError for a file that is damaged, and one that names every tensor that is missing, unknown, in two files
    or of a wrong shape. A second copy of the embeddings for a tied head is not read.
    """
    parameters = dict(model.named_parameters())
    names = {stock: family.released_name(stock) for stock in parameters}
    shapes = {names[stock]: tuple(tensor.shape) for stock, tensor in parameters.items()}
    tied = family.released_name("lm_head.weight") if model.config.tie_word_embeddings else None
    files_of: dict[str, Path] = {}
    problems = []
    for path in shards(folder):
        for name, shape in read_shapes(path).items():
            if name == tied or name.endswith(_COMPUTED):
                continue
            if name in files_of:
                problems.append(f"{name} is in {files_of[name].name} and in {path.name}")
            if name not in shapes:
                problems.append(f"{name} is of no layer")
            elif shape != shapes[name]:
                problems.append(f"{name} is {shape}, not {shapes[name]}")
            files_of[name] = path
    problems += [f"{name} is missing" for name in shapes if name not in files_of]
    if problems:
        remedy = f"This is not a whole {family.name} checkpoint: fetch or make it again."
        raise InputError(folder, listed(problems), remedy)
    return {stock: (name, files_of[name]) for stock, name in names.items()}
