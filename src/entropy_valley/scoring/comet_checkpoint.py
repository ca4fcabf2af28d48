"""Folders of COMET checkpoints: where they come from, whether they are whole, how they are loaded."""

import contextlib
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import yaml

from entropy_valley import files, hub
from entropy_valley.errors import InputError
from entropy_valley.settings import REPOSITORY, JsonObject, read_object

CHECKPOINT = Path("checkpoints", "model.ckpt")
HPARAMS = "hparams.yaml"

_READS = {  # COMET's classes that score one translation: what they read, None where hparams.yaml says so
    "regression_metric": ["src", "mt", "ref"],
    "referenceless_regression_metric": ["src", "mt"],
    "unified_metric": None,
    "xcomet_metric": ["mt", "src", "ref"],
}

_REMEDY = (
    "Where there is a network, run `hf download Unbabel/wmt22-comet-da` (or what it is) and the same for the *.json "
    "files of its encoder, xlm-roberta-large; copy the first folder, with the second inside it, and set "
    "`scoring.comet.checkpoint` (or that of the metric): path/to/wmt22-comet-da/checkpoints/model.ckpt"
)

_AGAIN = f"Copy the whole checkpoint again. {_REMEDY}"


def check_class(path: Path, reference_free: bool) -> None:
    """Raise InputError unless the checkpoint's class scores one translation, with or without reference as asked."""
    hparams = read_hparams(path.parents[1])
    kind = hparams.get("class_identifier")
    if kind not in _READS:
        raise InputError(path, f"its class is {kind!r}", f"Take a checkpoint of {', '.join(_READS)}.")
    reads = _READS[kind] or hparams.get("input_segments", [])
    if not reference_free and "ref" not in reads:
        raise InputError(path, "it reads no reference", "Say so: `reference_free: true`.")
    if reference_free and (kind == "regression_metric" or "src" not in reads):
        raise InputError(path, "it cannot score without a reference", "Remove `reference_free`.")


def read_hparams(folder: Path) -> JsonObject:
    """What hparams.yaml of a checkpoint's folder says; InputError if it is not YAML with a mapping."""
    path = folder / HPARAMS
    with files.readable(path, "YAML file", f"{_AGAIN}."):
        hparams = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(hparams, dict):
        raise InputError(path, "does not hold a mapping", f"{_AGAIN}.")
    return hparams


def encoder_of(folder: Path) -> str:
    """The repository of a checkpoint's encoder, as its hparams.yaml names it; InputError if it names none."""
    named = read_hparams(folder).get("pretrained_model")
    if not isinstance(named, str) or not re.fullmatch(REPOSITORY, named):
        problem = f"`pretrained_model` is {named!r}, not the name of an encoder on the hub"
        raise InputError(folder / HPARAMS, problem, f"{_AGAIN}.")
    return named


def locate(checkpoint: str | Path | None) -> Path:
    """The absolute path of a checkpoint: a ``.ckpt`` file two folders below its hparams.yaml, or the upper folder.

    Raises InputError where there is none.
    """
    if checkpoint is None:
        raise InputError("COMET", "no checkpoint is given", f"{_REMEDY}.")
    path = Path(checkpoint).absolute()  # never resolved: in the hub's cache the file is a link and its folder matters
    path = path / CHECKPOINT if path.is_dir() else path
    if path.suffix != ".ckpt" or not path.is_file():
        raise InputError(checkpoint, "not a COMET checkpoint", f"{_REMEDY}.")
    return path


def comet_models() -> Any:
    """The module ``comet.models``, without a warning to developers of a package that it imports."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "pkg_resources is deprecated as an API")
        import comet.models
    return comet.models


def load(checkpoint: str | Path, device: str = "cpu") -> Any:
    """The COMET model of a checkpoint in float32 on ``device``, in evaluation mode, without any network access.

    The encoder's tokenizer and configuration, named in hparams.yaml, are looked for beside that file and then in the
    hub's cache: a folder that holds them can be moved anywhere.
    """
    import torch

    path = locate(checkpoint)
    read_hparams(path.parents[1])
    with files.readable(path, "COMET checkpoint", f"{_AGAIN}."), contextlib.chdir(path.parents[1]):
        # A class or a function, which could run code, is refused. The tensors themselves are not read here.
        saved = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
        model = comet_models().load_from_checkpoint(str(path), reload_hparams=True, local_files_only=True)
        # COMET would leave what is missing at random values.
        missing = {name for name, _ in model.named_parameters()} - {*saved["state_dict"]}
    if missing:
        raise InputError(path, f"{len(missing)} tensors are missing, {min(missing)} first", f"{_REMEDY}.")
    return model.float().eval().to(device)


# --- Where downloaded COMET checkpoints come from: pinned commits, and what a folder says of its origin.

MANIFEST = "comet.json"
_ENCODER = "c23d21b0620b635a76227c604d44e43a9f0ee389"
PINNED = {  # the commit of each repository that the config may leave out
    "Unbabel/wmt22-comet-da": "2760a223ac957f30acfb18c8aa649b01cf1d75f2",
    "FacebookAI/xlm-roberta-large": _ENCODER,
    "xlm-roberta-large": _ENCODER,  # its name before, which COMET's files have
}
CHECKPOINT_FILES = ["*.ckpt", "*.yaml", "LICENSE*", "README.md"]
ENCODER_FILES = ("*.json", "*.model", "vocab.txt")


def pinned(repository: str, revision: str | None = None) -> str | None:
    """The commit to use: ``revision`` if the config has one, else ours; None: the newest, written to the results."""
    return revision or PINNED.get(repository)


def folder_name(repository: str, revision: str | None = None) -> str:
    """The name of a checkpoint's folder: another checkpoint, or another commit of it, is in another folder."""
    commit = pinned(repository, revision)
    return repository.replace("/", "--") + (f"@{commit[:8]}" if commit else "")


def size(name: str) -> int:
    """The bytes of the download into a folder with the :func:`folder_name` ``name``; 0 if they are not known: only
    those of COMET-22 are."""
    return 2_330_000_000 if name == folder_name("Unbabel/wmt22-comet-da") else 0


def fetched(repository: str, revision: str | None, folder: Path, metric: str, agreed: bool) -> JsonObject:
    """Download a metric's checkpoint and its encoder's tokenizer unless ``folder`` exists; what the folder is.

    ``agreed``: whether the config has agreed to large downloads.
    """
    section = metric if metric == "comet" else f"metrics.{metric}"
    key = f"`scoring.{section}.checkpoint` (its .ckpt file)"
    files.make_once(folder, lambda work: _fetch(repository, revision, key, work, agreed))
    check(folder, repository, revision)
    return files.read_json(folder / MANIFEST)


def _fetch(repository: str, revision: str | None, key: str, work: Path, agreed: bool) -> None:
    source = hub.listing(repository, pinned(repository, revision), key)
    hub.require_agreement(source, CHECKPOINT_FILES, agreed)
    hub.fetch(source, work, CHECKPOINT_FILES, key)
    # The checkpoint holds the encoder's weights, but COMET reads its tokenizer and config by name, here first.
    encoder = encoder_of(work)
    tokenizer = hub.listing(encoder, pinned(encoder), key)
    hub.fetch(tokenizer, work / encoder, ENCODER_FILES, key)
    paths = [path for pattern in ENCODER_FILES for path in (work / encoder).glob(pattern)]
    manifest = {
        "repository": repository,
        "revision": source.commit,
        "digest": files.file_digest(work / CHECKPOINT),
        "encoder": encoder,
        "encoder_revision": tokenizer.commit,
        "encoder_digest": files.digest(files.digests(paths)),
    }
    files.write_json(work / MANIFEST, manifest)


def check(folder: Path, repository: str, revision: str | None) -> None:
    """Raise InputError unless a folder with a manifest holds the checkpoint ``repository``, of the commit if one is
    asked for. A folder without a manifest is the user's own.
    """
    if not (folder / MANIFEST).is_file():
        return
    origin = {"repository": "a checkpoint that was trained", **read_object(folder / MANIFEST)}
    hub.require_origin(folder, origin, repository, pinned(repository, revision))
