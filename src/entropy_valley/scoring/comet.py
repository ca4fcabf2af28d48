"""COMET segment scores: the same code for Unbabel/wmt22-comet-da and for the demo's embedded estimator.

The model is run by a plain loop over its own ``prepare_sample`` and ``forward`` instead of ``predict``: Lightning's
trainer takes seconds to start, reorders sentences on several GPUs and refuses SLURM jobs of several tasks.

A score in a padded batch depends in its last digits on the neighbours. Consecutive batches of the file are therefore
the unit of caching, and with ``batch_size`` 1 a score is a function of its sentence alone: equal translations get equal
scores whichever method made them, which a test that treats zero differences apart (Wilcoxon, Pratt) relies on.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.progress import progress
from entropy_valley.store import Store

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

Segment = tuple[str, str, str]
"""Source, hypothesis, reference."""

_REMEDY = (
    "Where there is a network, run `hf download Unbabel/wmt22-comet-da` and the same for the *.json files of "
    "xlm-roberta-large; copy the first folder, with the second inside it, and set "
    "`scoring.comet.checkpoint: path/to/wmt22-comet-da/checkpoints/model.ckpt`"
)


class Comet:
    """A COMET checkpoint that scores in float32 on one device; loaded when a score is missing, not before.

    ``checkpoint`` is a ``.ckpt`` file or its COMET folder (see :func:`locate`), ``name`` what the signature calls it
    (None: the folder's name). ``threads`` is for the CPU and changes no number.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        *,
        name: str | None = None,
        device: str = "cpu",
        batch_size: int = 1,
        threads: int = 1,
    ) -> None:
        self._path = locate(checkpoint)
        self._device, self._batch_size, self._threads = device, batch_size, threads
        self.digest = files.file_digest(self._path)
        self.signature = "|".join(
            (
                f"comet:{version('unbabel-comet')}",
                f"model:{name or self._path.parents[1].name}",
                f"digest:{self.digest[:16]}",
                "precision:fp32",
                f"device:{device}",
                f"batch:{batch_size}",
            )
        )

    def segment_scores(
        self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], store: Store | None = None
    ) -> list[float]:
        """One score per sentence, in order, rounded to :data:`DECIMALS`; what ``store`` has is not computed again."""
        segments = list(zip(sources, hypotheses, references, strict=True))
        starts = range(0, len(segments), self._batch_size)
        batches = [segments[start : start + self._batch_size] for start in starts]
        bar = progress(batches, description="COMET", unit="batch")
        return [score for batch in bar for score in self._remembered(batch, store)]

    def _remembered(self, batch: Sequence[Segment], store: Store | None) -> list[float]:
        key = files.digest({"metric": self.signature, "segments": batch})
        known = store.get(key) if store is not None else None
        if known is not None:
            return known["scores"]
        scores = [round(score, DECIMALS) for score in batch_scores(self._model, batch)]
        if store is not None:
            store.put(key, {"scores": scores})
        return scores

    @functools.cached_property
    def _model(self) -> Any:
        import torch

        torch.set_num_threads(self._threads)
        return load(self._path, self._device)


def batch_scores(model: Any, batch: Sequence[Segment]) -> list[float]:
    """Scores of one padded batch by a COMET model in evaluation mode, in order."""
    import torch

    samples = [{"src": source, "mt": hypothesis, "ref": reference} for source, hypothesis, reference in batch]
    inputs = model.prepare_sample(samples, stage="predict")
    with torch.inference_mode():
        scores = model(**{name: tensor.to(model.device) for name, tensor in inputs.items()}).score.tolist()
    if len(scores) != len(batch):
        raise RuntimeError(f"COMET returned {len(scores)} scores for {len(batch)} sentences")
    return scores


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
