"""Scores by COMET checkpoints, in batches without padding: a score does not depend on the other segments."""

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr

from entropy_valley import files
from entropy_valley.progress import progress
from entropy_valley.scoring import comet_checkpoint
from entropy_valley.scoring.comet_checkpoint import check_class, load, locate
from entropy_valley.scoring.metrics import ScoringJob, Texts
from entropy_valley.settings import Checkpoint, Commit, Name, Section

# --- Batches without padding.
#
# A batch has sequences of one length, and its shape depends on this length alone. On a GPU it has 64 rows, fewer for
# long sequences: the kernel that computes a product, and so the order of its sums, depends on the number of rows. The
# last batch of a length is filled by repeating a sequence, so a segment alone runs in the same shape as in company,
# and each row is computed from itself. The estimator always gets 64 rows.
#
# On a CPU a batch has one row, which gives the bits of COMET run on one segment. A job may ask for more.


ROWS = {"cpu": 1, "cuda": 64}  # of a batch, and of the estimator's; signatures of scores have it
TOKENS = 16384  # of a batch, at most: sequences of more than 256 tokens have fewer rows
CHUNK = {"cpu": 1024, "cuda": 16384}  # segments between two times at which finished scores are handed out

NAMES = ("src", "mt", "ref")
Segment = tuple[str, ...]
"""Source, hypothesis and, where the model reads it, reference."""
Inputs = dict[str, Any]
"""A sequence as the encoder reads it: tensors of one row."""

_EMBEDS_SENTENCES = ("regression_metric", "referenceless_regression_metric")
_ENCODED = ("input_ids", "attention_mask", "token_type_ids")


def unpadded_scores(
    model: Any, segments: Sequence[Segment], rows: int | None = None
) -> Iterator[tuple[Segment, float]]:
    """Each of ``segments``, which are distinct, with its score; not in their order.

    ``model`` is a COMET model in evaluation mode. ``rows`` of a batch are :data:`ROWS`, unless they are given.
    """
    import torch

    score = _score_embedded if model.hparams.class_identifier in _EMBEDS_SENTENCES else _score_joint
    rows = rows or ROWS[model.device.type]
    remaining = iter(sorted(segments))  # so that those of one source, encoded once, are in one chunk
    while chunk := list(islice(remaining, CHUNK[model.device.type])):
        with torch.inference_mode():
            scores = score(model, chunk, rows)
        yield from zip(chunk, scores, strict=True)


def _score_embedded(model: Any, segments: Sequence[Segment], rows: int) -> list[float]:
    """Scores by a model that reads source, hypothesis and reference apart: each distinct text is encoded once."""
    import torch

    texts = list(dict.fromkeys(text for segment in segments for text in segment))
    longest = model.encoder.max_positions - 2  # as COMET cuts them
    ids = [torch.tensor([one]) for one in model.encoder.tokenizer(texts, truncation=True, max_length=longest).input_ids]
    sequences = [{"input_ids": one, "attention_mask": torch.ones_like(one)} for one in ids]

    def embed(**inputs: Any) -> Inputs:
        return {"embedding": model.get_sentence_embedding(**inputs)}

    embedded = dict(zip(texts, _by_length(embed, sequences, model.device, rows), strict=True))
    named = [
        {f"{name}_input_ids": embedded[text]["embedding"] for name, text in zip(NAMES, segment, strict=False)}
        for segment in segments
    ]
    masks = {name.replace("input_ids", "attention_mask"): None for name in named[0]}
    scores: list[float] = []
    with _replaced(model, "get_sentence_embedding", lambda embedding, _: embedding):
        for start in range(0, len(named), rows):
            batch = named[start : start + rows]
            scores += model.predict_step(_filled(batch, rows) | masks).scores.tolist()[: len(batch)]
    return scores


def _score_joint(model: Any, segments: Sequence[Segment], rows: int) -> list[float]:
    """Scores by a model that reads the texts of a segment in one sequence, or in three of different texts."""
    samples = [dict(zip(NAMES, segment, strict=False)) for segment in segments]
    prepared = [model.prepare_sample([sample], stage="predict") for sample in samples]
    sequences = [{name: one[name] for name in _ENCODED if name in one} for inputs in prepared for one in inputs]
    predictions = iter(_by_length(model.forward, sequences, model.device, rows))
    with _replaced(model, "forward", lambda **_: next(predictions)):
        return [model.predict_step(moved(inputs, model.device)).scores.item() for inputs in prepared]


def _by_length(run: Callable[..., Any], sequences: Sequence[Inputs], device: Any, most: int) -> list[Any]:
    """What ``run`` returns for each sequence, in order: a mapping to tensors of one row."""
    outputs: dict[int, Any] = {}
    by_length = defaultdict(list)
    for number, sequence in enumerate(sequences):
        by_length[sequence["input_ids"].shape[1]].append(number)
    for length, numbers in by_length.items():
        # A power of two fills a kernel's blocks of rows. Rows of an incomplete block may be summed in another order.
        rows = min(most, 1 << max(1, TOKENS // length).bit_length() - 1)
        for start in range(0, len(numbers), rows):
            batch = numbers[start : start + rows]
            together = run(**moved(_filled([sequences[number] for number in batch], rows), device))
            for row, number in enumerate(batch):
                outputs[number] = type(together)(**{name: one[row : row + 1] for name, one in together.items()})
    return [outputs[number] for number in range(len(sequences))]


def _filled(inputs: Sequence[Inputs], rows: int) -> Inputs:
    """Inputs of one row each as one of ``rows`` rows; the first one is repeated where there are fewer."""
    import torch

    filled = [*inputs, *[inputs[0]] * (rows - len(inputs))]
    return {name: torch.cat([one[name] for one in filled]) for name in inputs[0]}


def moved(inputs: Any, device: Any) -> Any:
    """A model's inputs on its device; unified models have one mapping each for source, reference and both."""
    if isinstance(inputs, tuple):
        return tuple(moved(one, device) for one in inputs)
    return {name: value.to(device) if hasattr(value, "to") else value for name, value in inputs.items()}


@contextlib.contextmanager
def _replaced(module: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """A module whose method ``name`` is another function while the block runs."""
    setattr(module, name, function)
    try:
        yield
    finally:
        delattr(module, name)


# --- The metric: COMET-22, reference-free checkpoints such as CometKiwi, XCOMET, and the toy COMET of the demo.
#
# The model is run by a plain loop over its own ``prepare_sample`` and ``predict_step`` instead of ``predict``:
# Lightning's trainer takes seconds to start, reorders sentences on several GPUs and refuses SLURM jobs of several
# tasks.
#
# A score is a function of its sentence alone, see above: equal translations get equal scores whichever method made
# them, which a test that treats zero differences apart (Wilcoxon, Pratt) relies on. A score in a padded batch would
# depend in its last digits on the neighbours.

DECIMALS = 6
RELEASED, TOY = "comet22", "toy_comet"


class Comet(Section):
    """A checkpoint of the COMET package, scored in float32; loaded when a score is missing, not before."""

    decimals: ClassVar[int] = 4

    checkpoint: Checkpoint = Field(description="owner/name on the hub, or a .ckpt file")
    revision: Commit | None = Field(
        None, description="commit of the repository; null: the pinned one, else the newest, written to the results"
    )
    batch_size: Literal[1] = Field(1, description="always 1: no score depends on its neighbours")
    reference_free: bool = Field(False, description="true: it sees no reference, as CometKiwi, or XCOMET if asked to")
    _job: ScoringJob = PrivateAttr()
    _path: Path = PrivateAttr()
    _model: Any = PrivateAttr(None)
    _scores: dict[Segment, float] = PrivateAttr(default_factory=dict)  # of sentences that it has scored by themselves

    def prepare(self, job: ScoringJob) -> None:
        """Find the checkpoint; InputError if there is none, or it cannot score with (or without) references."""
        self._job, self._path = job, locate(job.checkpoint)
        check_class(self._path, self.reference_free)
        if self.on_hub:
            comet_checkpoint.check(self._path.parents[1], self.checkpoint, self.revision)

    @property
    def on_hub(self) -> bool:
        """Whether the checkpoint is a repository: else it is a file of the user's own, or trained here."""
        return self.checkpoint is not None and not self.checkpoint.endswith(".ckpt")

    @property
    def digest(self) -> str:
        return files.digest_once(self._path)

    @property
    def signature(self) -> str:
        """What a score depends on beside its sentence."""
        return self._signed(self._job.device)

    def _signed(self, device: str) -> str:
        parts = [
            f"comet:{version('unbabel-comet')}",
            f"model:{self._model_name()}",
            f"digest:{self.digest[:16]}",
            "precision:fp32",
            f"device:{device}",
            f"batch:{self.batch_size}",
        ]
        if device.startswith("cuda"):
            parts.append(f"rows:{ROWS['cuda']}")  # other bits than those of a sentence alone
        return "|".join(parts + ["references:no"] * self.reference_free)

    def segment_scores(self, sources: Texts, hypotheses: Texts, references: Texts) -> list[float]:
        """One score per sentence, in order, rounded to :data:`DECIMALS`; what the store has is not computed again.

        A score depends on its sentence alone: the sentences may be those of many systems."""
        read = (sources, hypotheses) if self.reference_free else (sources, hypotheses, references)
        segments = list(zip(*read, strict=True))
        scores, store, signed = self._scores, self._job.store, self._signed(self._job.device_name)
        keys: dict[Segment, str] = {}  # of those that the store does not have
        for one in dict.fromkeys(segments):
            if one not in scores:
                keys[one] = files.digest({"metric": signed, "segments": [one]})
                if stored := store.get(keys[one]):
                    scores[one] = stored[0]
                    del keys[one]
        if keys:
            import torch

            if self._model is None:
                torch.set_num_threads(self._job.threads)
                self._model = load(self._path, self._job.device)
            scored = unpadded_scores(self._model, list(keys), self._job.rows)
            for one, score in progress(scored, total=len(keys), description="COMET", unit="sentence"):
                scores[one] = round(score, DECIMALS)
                if math.isfinite(score):
                    store.put(keys[one], [scores[one]])
        return [scores[one] for one in segments]

    def _model_name(self) -> str:
        """The hub's name, or the folder's of a user's own file."""
        return self._path.parents[1].name if self.checkpoint.endswith(".ckpt") else self.checkpoint


class MainComet(Comet):
    """The main metric: COMET-22 or another checkpoint, or the toy COMET where there is none."""

    name: Name | None = Field(None, description=f"its key in files; null: {RELEASED}, or {TOY} without a checkpoint")
    checkpoint: Checkpoint | None = Field(  # type: ignore[assignment]  # only the toy, which has a name of its own, has none
        None, description="owner/name on the hub, or a .ckpt file; null with `training`"
    )

    @property
    def key(self) -> str:
        """Its key in files."""
        return self.name or (RELEASED if self.checkpoint else TOY)

    def _model_name(self) -> str:
        # Signatures, and so the store's keys, have always called the toy "embedded".
        return super()._model_name() if self.checkpoint else "embedded"


def batch_scores(model: Any, batch: Sequence[Segment]) -> list[float]:
    """Scores of one padded batch by a COMET model in evaluation mode, in order."""
    import torch

    samples = [dict(zip(NAMES, segment, strict=False)) for segment in batch]
    inputs = model.prepare_sample(samples, stage="predict")
    with torch.inference_mode():
        return model.predict_step(moved(inputs, model.device)).scores.tolist()
