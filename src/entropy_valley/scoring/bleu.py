"""BLEU and chrF, computed by sacreBLEU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, PrivateAttr

from entropy_valley.errors import InputError
from entropy_valley.settings import Section

if TYPE_CHECKING:
    from entropy_valley.scoring.metrics import ScoringJob

_DECIMALS = 6  # of what is written; tables print `decimals`


class Bleu(Section):
    """Corpus BLEU (Papineni et al., 2002), 0 to 100."""

    decimals: ClassVar[int] = 2
    by_direction: ClassVar[bool] = True  # the tokenizer depends on the target language

    tokenize: (
        Literal["none", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores101", "flores200", "spBLEU-1K"]
        | None
    ) = Field(None, description="sacreBLEU's name of a tokenizer; null: its default for the target language")
    _bleu: Any = PrivateAttr(None)

    def prepare(self, job: ScoringJob) -> None:
        """Make the tokenizer; InputError where it needs a package or a file that is missing, with sacreBLEU's words."""
        from sacrebleu.metrics import BLEU

        try:
            self._bleu = BLEU(tokenize=self.tokenize, trg_lang=job.target_language)
        except (RuntimeError, ImportError, OSError, AssertionError) as error:
            problem = f"sacreBLEU has no tokenizer ({' '.join(str(error).split())})"
            remedy = "Install what it asks for, or set `tokenize` (of `scoring.bleu`) to another tokenizer."
            raise InputError(f"BLEU into {job.target_language!r}", problem, remedy) from error

    def system_score(self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> float:
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

    def segment_scores(
        self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
    ) -> list[float]:
        """chrF of each sentence, six decimals."""
        pairs = zip(hypotheses, references, strict=True)
        return [round(self._chrf.sentence_score(output, [reference]).score, _DECIMALS) for output, reference in pairs]

    def system_score(self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> float:
        """chrF of the corpus, which is not the mean of its sentences', six decimals."""
        return _corpus_score(self._chrf, hypotheses, references)

    @property
    def signature(self) -> str:
        return str(self._chrf.get_signature())


def _corpus_score(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> float:
    return round(metric.corpus_score(list(hypotheses), [list(references)]).score, _DECIMALS)
