"""Scores of COMET checkpoints: COMET-22, reference-free ones such as CometKiwi, XCOMET, and the toy COMET of the demo.

The model is run by a plain loop over its own ``prepare_sample`` and ``predict_step`` instead of ``predict``:
Lightning's trainer takes seconds to start, reorders sentences on several GPUs and refuses SLURM jobs of several tasks.

A score in a padded batch depends in its last digits on the neighbours. Consecutive batches of the file are therefore
the unit of caching, and with ``batch_size`` 1 a score is a function of its sentence alone: equal translations get equal
scores whichever method made them, which a test that treats zero differences apart (Wilcoxon, Pratt) relies on.
"""

from __future__ import annotations

import contextlib
import pickle
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import Field, PositiveInt, PrivateAttr

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.progress import progress
from entropy_valley.scoring.job import Job
from entropy_valley.settings import Name, Section

DECIMALS = 6
CHECKPOINT = Path("checkpoints", "model.ckpt")
HPARAMS = "hparams.yaml"

_BROKEN = (
    OSError,
    EOFError,
    RuntimeError,  # torch: not a whole archive
    LookupError,  # COMET: no such hyper-parameter or tensor
    ValueError,
    TypeError,
    AttributeError,  # transformers: a tokenizer without files
    pickle.UnpicklingError,
)

Segment = tuple[str, ...]
"""Source, hypothesis and, where the model reads it, reference."""

RELEASED, TOY = "comet22", "toy_comet"
_TOY_SIGNATURE = "embedded"  # what signatures and so the store's keys have always called the toy
_READS = {  # COMET's classes that score one translation: what they read, None where hparams.yaml says so
    "regression_metric": ["src", "mt", "ref"],
    "referenceless_regression_metric": ["src", "mt"],
    "unified_metric": None,
    "xcomet_metric": ["mt", "src", "ref"],
}
_WITHOUT_REFERENCE = ("referenceless_regression_metric", "unified_metric", "xcomet_metric")

_REMEDY = (
    "Where there is a network, run `hf download Unbabel/wmt22-comet-da` (or what it is) and the same for the *.json "
    "files of its encoder, xlm-roberta-large; copy the first folder, with the second inside it, and set "
    "`scoring.comet.checkpoint` (or that of the metric): path/to/wmt22-comet-da/checkpoints/model.ckpt"
)


class Comet(Section):
    """A checkpoint of the COMET package, scored in float32; loaded when a score is missing, not before."""

    decimals: ClassVar[int] = 4

    checkpoint: str = Field(description="owner/name on the hub, or a .ckpt file")
    batch_size: PositiveInt = Field(1, description="sentences per pass; with 1 no score depends on its neighbours")
    reference_free: bool = Field(False, description="true: it sees no reference, as CometKiwi, or XCOMET if asked to")
    _job: Job = PrivateAttr()
    _path: Path = PrivateAttr()
    _model: Any = PrivateAttr(None)

    def prepare(self, job: Job) -> None:
        """Find the checkpoint; InputError if there is none, or it cannot score with (or without) references."""
        self._job, self._path = job, locate(job.checkpoint)
        check_class(self._path, self.reference_free)

    @property
    def digest(self) -> str:
        return files.file_digest(self._path)

    @property
    def signature(self) -> str:
        """What a score depends on beside its sentence; a key of the store."""
        parts = [
            f"comet:{version('unbabel-comet')}",
            f"model:{self._model_name()}",
            f"digest:{self.digest[:16]}",
            "precision:fp32",
            f"device:{self._job.device}",
            f"batch:{self.batch_size}",
        ]
        return "|".join(parts + ["references:no"] * self.reference_free)

    def segment_scores(
        self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
    ) -> list[float]:
        """One score per sentence, in order, rounded to :data:`DECIMALS`; what the store has is not computed again."""
        read = (sources, hypotheses) if self.reference_free else (sources, hypotheses, references)
        segments = list(zip(*read, strict=True))
        starts = range(0, len(segments), self.batch_size)
        batches = [segments[start : start + self.batch_size] for start in starts]
        signature = self.signature
        bar = progress(batches, description="COMET", unit="batch")
        return [score for batch in bar for score in self._remembered(batch, signature)]

    def _remembered(self, batch: Sequence[Segment], signature: str) -> list[float]:
        store, key = self._job.store, files.digest({"metric": signature, "segments": batch})
        known = store.get(key) if store is not None else None
        if known is not None:
            return known["scores"]
        scores = [round(score, DECIMALS) for score in batch_scores(self._loaded(), batch)]
        if store is not None:
            store.put(key, {"scores": scores})
        return scores

    def _loaded(self) -> Any:
        import torch

        if self._model is None:
            torch.set_num_threads(self._job.threads)
            self._model = load(self._path, self._job.device)
        return self._model

    def _model_name(self) -> str:
        """The hub's name, or the folder's of a user's own file."""
        return self._path.parents[1].name if self.checkpoint.endswith(".ckpt") else self.checkpoint


class MainComet(Comet):
    """The main metric: COMET-22 or another checkpoint, or the toy COMET where there is none."""

    name: Name | None = Field(None, description=f"its key in files; null: {RELEASED}, or {TOY} without a checkpoint")
    checkpoint: str | None = Field(None, description="owner/name on the hub, or a .ckpt file; null with `training`")

    @property
    def key(self) -> str:
        """Its key in files."""
        return self.name or (RELEASED if self.checkpoint else TOY)

    @property
    def former_names(self) -> tuple[str, ...]:
        """Earlier versions wrote the toy's scores under COMET-22's name."""
        return () if self.checkpoint else (RELEASED,)

    def _model_name(self) -> str:
        return super()._model_name() if self.checkpoint else _TOY_SIGNATURE


def batch_scores(model: Any, batch: Sequence[Segment]) -> list[float]:
    """Scores of one padded batch by a COMET model in evaluation mode, in order."""
    import torch

    samples = [dict(zip(("src", "mt", "ref"), segment, strict=False)) for segment in batch]
    inputs = model.prepare_sample(samples, stage="predict")
    with torch.inference_mode():
        scores = model.predict_step(_moved(inputs, model.device)).scores.tolist()
    if len(scores) != len(batch):
        raise RuntimeError(f"COMET returned {len(scores)} scores for {len(batch)} sentences")
    return scores


def _moved(inputs: Any, device: Any) -> Any:
    """A model's inputs on its device; unified models have one mapping each for source, reference and both."""
    if isinstance(inputs, tuple):
        return tuple(_moved(one, device) for one in inputs)
    return {name: value.to(device) if hasattr(value, "to") else value for name, value in inputs.items()}


def check_class(path: Path, reference_free: bool) -> None:
    """Raise InputError unless the checkpoint's class scores one translation, with or without reference as asked."""
    hparams = yaml.safe_load((path.parents[1] / HPARAMS).read_text(encoding="utf-8"))
    kind = hparams.get("class_identifier")
    if kind not in _READS:
        raise InputError(path, f"its class is {kind!r}", f"Take a checkpoint of {', '.join(_READS)}.")
    reads = _READS[kind] or hparams.get("input_segments", [])
    if not reference_free and "ref" not in reads:
        raise InputError(path, "it reads no reference", "Say so: `reference_free: true`.")
    if reference_free and (kind not in _WITHOUT_REFERENCE or "src" not in reads):
        raise InputError(path, "it cannot score without a reference", "Remove `reference_free`.")


def locate(checkpoint: str | Path) -> Path:
    """The absolute path of a checkpoint: a ``.ckpt`` file two folders below its hparams.yaml, or the upper folder."""
    path = Path(checkpoint).absolute()  # never resolved: in the hub's cache the file is a link and its folder matters
    path = path / CHECKPOINT if path.is_dir() else path
    if path.suffix != ".ckpt" or not path.is_file():
        raise InputError(checkpoint, "no COMET checkpoint", f"{_REMEDY}.")
    if not (path.parents[1] / HPARAMS).is_file():
        raise InputError(path, f"no {HPARAMS} in {path.parents[1]}", f"Keep COMET's layout: {HPARAMS}, {CHECKPOINT}.")
    return path


def load(checkpoint: str | Path, device: str = "cpu") -> Any:
    """The COMET model of a checkpoint in float32 on ``device``, in evaluation mode, without any network access.

    The encoder's tokenizer and configuration, named in hparams.yaml, are looked for beside that file and then in the
    hub's cache: a folder that holds them can be moved anywhere.
    """
    from comet.models import load_from_checkpoint

    path = locate(checkpoint)
    try:
        with contextlib.chdir(path.parents[1]):
            model = load_from_checkpoint(str(path), reload_hparams=True, local_files_only=True)
        missing = {name for name, _ in model.named_parameters()} - _stored_tensors(path)
    except _BROKEN as error:
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise InputError(
            path, f"COMET cannot load it ({reason})", f"Copy the whole checkpoint again. {_REMEDY}."
        ) from error
    if missing:
        raise InputError(path, f"{len(missing)} tensors are missing, {min(missing)} first", f"{_REMEDY}.")
    return model.float().eval().to(device)


def _stored_tensors(path: Path) -> set[str]:
    """Names in the checkpoint, without reading the tensors: COMET would leave what is missing at random values."""
    import torch

    return set(torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))["state_dict"])
