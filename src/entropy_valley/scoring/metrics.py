"""What a metric is: a class whose fields are its settings, and what files and tables need to know of it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from entropy_valley import plugins
from entropy_valley.errors import InputError
from entropy_valley.machine import device_name
from entropy_valley.scoring.bleu import Bleu, Chrf
from entropy_valley.scoring.comet import Comet, MainComet
from entropy_valley.store import Store

METRICS = {"comet": Comet, "bleu": Bleu, "chrf": Chrf}
"""Ours by the name that the config has for them; a user's own is ``module:Class``."""

_FITS = 'docs/extending.md, "A metric of your own", shows what such a class has.'
_FIX = "Correct the metric, or remove it from `scoring.metrics`."


@dataclass(frozen=True)
class Metric:
    """A metric: its key in files, its name in print, and how its numbers are read.

    ``segments``: it scores sentences too, not only a whole system. ``by_direction``: its signature depends on the
    target language, so that only the cells of one direction must agree in it.
    """

    name: str
    label: str
    decimals: int
    higher_is_better: bool = True
    segments: bool = True
    reference_free: bool = False
    by_direction: bool = False


class Scorer(Protocol):
    """A metric as a class. Its settings are its fields, or the keyword arguments of its constructor.

    It has ``segment_scores`` or ``system_score`` or both; without ``system_score`` the system's score is the mean of
    its sentences'. Optional attributes: ``higher_is_better`` (else true), ``reference_free`` and ``by_direction``
    (else false), ``digest`` (of what it read), and ``prepare(job)``, which is called once before anything is scored.
    """

    decimals: int
    signature: str
    """What its numbers depend on, in one line; read after scoring."""

    def segment_scores(
        self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
    ) -> list[float]: ...

    def system_score(self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> float: ...


@dataclass(frozen=True)
class ScoringJob:
    """What a metric may use of the job that scores.

    ``checkpoint``: a COMET folder or its ``.ckpt`` file, of metrics that have one. ``threads`` are for the CPU and
    change no number. ``store`` keeps finished scores between jobs; without a folder it keeps none.
    """

    target_language: str
    checkpoint: str | Path | None = None
    device: str = "cpu"
    threads: int = 1
    store: Store = field(default_factory=lambda: Store(None))

    @functools.cached_property
    def device_name(self) -> str:
        """How the store's keys name the device: a GPU by its model."""
        return device_name(self.device)


@dataclass(frozen=True)
class Scores:
    """What a metric says of one system; ``segments`` is None if it scores no single sentences."""

    system: float
    segments: list[float] | None
    signature: str
    digest: str | None


def make_metric(name: str, settings: Mapping[str, Any]) -> Scorer:
    """The metric that ``name`` says, with its settings; InputError if there is none or its class does not fit."""
    metric = plugins.make("metric", METRICS, name, settings, ("decimals",))
    name = plugins.without_code(name)
    if not (_scores_segments(metric) or callable(getattr(metric, "system_score", None))):
        raise InputError(f"metric {name!r}", "has neither segment_scores nor system_score", _FITS)
    if not (hasattr(type(metric), "signature") or hasattr(metric, "signature") or hasattr(metric, "prepare")):
        raise InputError(f"metric {name!r}", "has no `signature`, the line that says what its numbers depend on", _FITS)
    return metric


def from_params(params: Mapping[str, Any]) -> dict[str, Scorer]:
    """The metrics that a ``score`` job's params name, by their keys in files, in the order of the files' keys."""
    comet = MainComet(**params["comet"])
    further = {name: dict(settings) for name, settings in params.get("metrics", {}).items()}
    return {
        comet.key: comet,
        "bleu": Bleu(**params.get("bleu", {})),
        "chrf": Chrf(**params.get("chrf", {})),
        **{name: make_metric(settings.pop("metric"), settings) for name, settings in further.items()},
    }


def describe(name: str, label: str, metric: Scorer) -> Metric:
    """What files and tables need to know of a metric that the config calls ``name`` and prints as ``label``."""
    return Metric(
        name,
        label,
        metric.decimals,
        getattr(metric, "higher_is_better", True),
        _scores_segments(metric),
        getattr(metric, "reference_free", False),
        getattr(metric, "by_direction", False),
    )


def prepare(name: str, metric: Scorer, job: ScoringJob) -> None:
    """Have a metric make itself ready, once, before it scores anything."""
    if hasattr(metric, "prepare"):
        with plugins.calling(metric, "prepare", f"metric {name!r}"):
            metric.prepare(job)


def score(
    name: str,
    metric: Scorer,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    system: str = "",
) -> Scores:
    """Score one system by a metric that is ready; ``system`` is its name in errors.

    The metric gets tuples: what it changes in place would change the texts of the metrics after it. Raises InputError
    where the metric gives no list of numbers, too few of them, or one that is not finite.
    """
    sources, hypotheses, references = map(tuple, (sources, hypotheses, references))
    place = f" of {system}" if system else ""
    segments, about = None, f"metric {name!r}, {len(hypotheses)} sentences{place}"
    if _scores_segments(metric):
        with plugins.calling(metric, "segment_scores", about):
            answer = metric.segment_scores(sources, hypotheses, references)
        if isinstance(answer, Mapping | Set):  # whose keys would be taken for scores, or whose order says nothing
            problem = f"gave a {type(answer).__name__}, not a score for each sentence in their order{place}"
            raise InputError(f"metric {name!r}", problem, _FIX)
        with plugins.calling(metric, "segment_scores", about):
            segments = [float(value) for value in answer]
        _require_numbers(name, segments, len(hypotheses), place)
    if hasattr(metric, "system_score"):
        with plugins.calling(metric, "system_score", about):
            total = float(metric.system_score(sources, hypotheses, references))
    else:
        total = sum(segments) / max(1, len(segments))
    if not math.isfinite(total):
        raise InputError(f"metric {name!r}", f"gave {total} for the system{place}", _FIX)
    with plugins.calling(metric, "signature", about):
        return Scores(total, segments, str(metric.signature), getattr(metric, "digest", None))


def _require_numbers(name: str, segments: Sequence[float], sentences: int, place: str) -> None:
    """Raise InputError unless there are as many scores as sentences, all finite."""
    if len(segments) != sentences:
        raise InputError(f"metric {name!r}", f"gave {len(segments)} scores for {sentences} sentences{place}", _FIX)
    for number, value in enumerate(segments, 1):
        if not math.isfinite(value):
            raise InputError(f"metric {name!r}", f"gave {value} for sentence {number}{place}", _FIX)


def _scores_segments(metric: Scorer) -> bool:
    return callable(getattr(metric, "segment_scores", None))
