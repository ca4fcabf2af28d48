"""What a metric is: a class whose fields are its settings, and what files and tables need to know of it; then the two
that sacreBLEU computes, BLEU and chrF, as the shortest examples."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from pydantic import Field, NonNegativeInt, PositiveInt, PrivateAttr

from entropy_valley import plugins
from entropy_valley.errors import InputError, refusal
from entropy_valley.machine import device_name
from entropy_valley.settings import PerDirection, Section
from entropy_valley.store import Store

Texts = Sequence[str]  # of a system or its test set, in one order
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
    by_direction: bool = False


class Scorer(Protocol):
    """A metric as a class. Its settings are its fields, or the keyword arguments of its constructor.

    It has one of two methods, or both. ``segment_scores(sources, hypotheses, references)`` gives a list with the score
    of each sentence; their mean is the system's score where the other method is missing. ``system_score(sources,
    hypotheses, references)`` gives the score of a system as a whole. Optional attributes: ``higher_is_better`` (else
    true), ``by_direction`` (else false), ``digest`` (of what it read), and ``prepare(job)``, called once before it
    scores.
    """

    @property
    def decimals(self) -> int: ...

    @property
    def signature(self) -> str:
        """What its numbers depend on, in one line; read after scoring."""
        ...


@dataclass(frozen=True)
class ScoringJob:
    """What a metric may use of the job that scores.

    ``checkpoint``: a COMET folder or its ``.ckpt`` file, of metrics that have one. ``threads`` are for the CPU and
    change no number. ``store`` keeps finished scores between jobs; without a folder it keeps none. ``rows`` of
    COMET's batches change the last digits: None for those that scores have in files.
    """

    target_language: str
    checkpoint: str | Path | None = None
    device: str = "cpu"
    threads: int = 1
    store: Store = field(default_factory=lambda: Store(None))
    rows: int | None = None

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


def describe(name: str, label: str, metric: Scorer) -> Metric:
    """What files and tables need to know of a metric that the config calls ``name`` and prints as ``label``."""
    return Metric(
        name,
        label,
        metric.decimals,
        getattr(metric, "higher_is_better", True),
        scores_segments(metric),
        getattr(metric, "by_direction", False),
    )


def prepare(name: str, metric: Scorer, job: ScoringJob) -> None:
    """Have a metric make itself ready, once, before it scores anything."""
    if hasattr(metric, "prepare"):
        with plugins.calling(metric, "prepare", f"metric {name!r}"):
            metric.prepare(job)


def score(name: str, metric: Any, sources: Texts, hypotheses: Texts, references: Texts, system: str = "") -> Scores:
    """Score one system by a metric that is ready; ``system`` is its name in errors.

    The metric gets tuples: what it changes in place would change the texts of the metrics after it. Raises InputError
    where the metric gives no list of numbers, too few of them, or one that is not finite.
    """
    texts, count = (tuple(sources), tuple(hypotheses), tuple(references)), len(hypotheses)
    place = f" of {system}" if system else ""
    segments, problem, about = None, "", f"metric {name!r}, {count} sentences{place}"
    if scores_segments(metric):
        with plugins.calling(metric, "segment_scores", about):
            answer = metric.segment_scores(*texts)
            segments = [float(value) for value in answer]
        if isinstance(answer, Mapping | Set):  # whose keys would be taken for scores, or whose order says nothing
            problem = f"gave a {type(answer).__name__}, not a score for each sentence in their order"
        elif len(segments) != count:
            problem = f"gave {len(segments)} scores for {count} sentences"
        elif bad := [number for number, value in enumerate(segments, 1) if not math.isfinite(value)]:
            problem = f"gave {segments[bad[0] - 1]} for sentence {bad[0]}"
    if scores_systems(metric):
        with plugins.calling(metric, "system_score", about):
            total = float(metric.system_score(*texts))
    else:
        total = sum(segments or ()) / max(1, count)
    if not problem and not math.isfinite(total):
        problem = f"gave {total} for the system"
    if problem:
        raise InputError(f"metric {name!r}", f"{problem}{place}", _FIX)
    with plugins.calling(metric, "signature", about):
        return Scores(total, segments, str(metric.signature), getattr(metric, "digest", None))


def scores_segments(metric: Scorer) -> bool:
    return callable(getattr(metric, "segment_scores", None))


def scores_systems(metric: Scorer) -> bool:
    return callable(getattr(metric, "system_score", None))


# --- BLEU and chrF.

_DECIMALS = 6  # of what is written; tables print `decimals`
Tokenizer = Literal["none", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores101", "flores200", "spBLEU-1K"]
# By language: sacreBLEU's defaults, and Cantonese. Those with mecab need a package of their own.
_DEFAULTS: Mapping[str, Tokenizer] = {"zh": "zh", "yue": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
# Languages without blanks between words for which it has no tokenizer.
_UNSPACED = ("bo", "dz", "km", "lo", "my", "th")


class Bleu(Section):
    """Corpus BLEU (Papineni et al., 2002), 0 to 100."""

    decimals: ClassVar[int] = 2
    by_direction: ClassVar[bool] = True  # the tokenizer depends on the target language

    tokenize: PerDirection[Tokenizer | None] = Field(
        None, description="sacreBLEU's name of a tokenizer; null: its default for the target language"
    )
    _bleu: Any = PrivateAttr(None)

    def of(self, direction: str) -> Bleu:
        """With the tokenizer of a direction; for codes that sacreBLEU does not know, such as zh_tw, that of zh."""
        given, target = self.tokenize, direction.split("-")[1]
        name = given.get(direction) if isinstance(given, Mapping) else given
        if name is None and (target == "yue" or "_" in target):
            name = _DEFAULTS.get(target.partition("_")[0])
        return self.model_copy(update={"tokenize": name})

    def refused(self, language: str) -> str | None:
        """Why it cannot split texts of a language as this machine is, and what to do; None if it can."""
        if self.tokenize is None and language.partition("_")[0] in _UNSPACED:
            problem = f"sacreBLEU's default splits at blanks, and {language} has none between words"
            return f"{problem}. Set `tokenize` to flores200, or to char"
        if (self.tokenize or _DEFAULTS.get(language)) in ("ja-mecab", "ko-mecab"):
            return refusal(self.prepare, ScoringJob(language))
        return None

    def prepare(self, job: ScoringJob) -> None:
        """Make the tokenizer; InputError where it needs a package or a file that is missing, with sacreBLEU's words."""
        from sacrebleu.metrics import BLEU

        try:
            self._bleu = BLEU(tokenize=self.tokenize, trg_lang=job.target_language)
        except (RuntimeError, ImportError, OSError, AssertionError) as error:
            problem = f"sacreBLEU has no tokenizer ({' '.join(str(error).split())})"
            remedy = "Install what it asks for, or set `tokenize` (of `scoring.bleu`) to another tokenizer."
            raise InputError(f"BLEU into {job.target_language!r}", problem, remedy) from error

    def system_score(self, sources: Texts, hypotheses: Texts, references: Texts) -> float:
        """BLEU of the corpus, six decimals."""
        return _corpus_score(self._bleu, hypotheses, references)

    @property
    def signature(self) -> str:
        return str(self._bleu.get_signature())


class Chrf(Section):
    """chrF (Popović, 2015), 0 to 100: the F-score of character n-grams, and of word n-grams in chrF++."""

    decimals: ClassVar[int] = 2

    char_order: PositiveInt = Field(6, description="longest n-gram of characters")
    word_order: NonNegativeInt = Field(0, description="longest n-gram of words; 2 is chrF++")
    beta: PositiveInt = Field(2, description="weight of recall over precision")
    _chrf: Any = PrivateAttr(None)

    def prepare(self, job: ScoringJob) -> None:
        from sacrebleu.metrics import CHRF

        self._chrf = CHRF(char_order=self.char_order, word_order=self.word_order, beta=self.beta)

    def segment_scores(self, sources: Texts, hypotheses: Texts, references: Texts) -> list[float]:
        """chrF of each sentence, six decimals."""
        pairs = zip(hypotheses, references, strict=True)
        return [round(self._chrf.sentence_score(one, [other]).score, _DECIMALS) for one, other in pairs]

    def system_score(self, sources: Texts, hypotheses: Texts, references: Texts) -> float:
        """chrF of the corpus, which is not the mean of its sentences', six decimals."""
        return _corpus_score(self._chrf, hypotheses, references)

    @property
    def signature(self) -> str:
        return str(self._chrf.get_signature())


def _corpus_score(metric: Any, hypotheses: Texts, references: Texts) -> float:
    return round(metric.corpus_score(list(hypotheses), [list(references)]).score, _DECIMALS)
