"""sacreBLEU's BLEU and chrF with their signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_TOKENIZERS = {"zh": "zh"}
_DEFAULT_TOKENIZER = "13a"
_DECIMALS = 6


class SystemScore(NamedTuple):
    """A system's score (0 to 100) and the signature of the metric that gave it."""

    value: float
    signature: str


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str], target_language: str) -> SystemScore:
    """Corpus BLEU; ``tok:zh`` into Chinese and ``13a`` otherwise, always named explicitly."""
    from sacrebleu.metrics import BLEU

    tokenizer = _TOKENIZERS.get(target_language, _DEFAULT_TOKENIZER)
    return _corpus_score(BLEU(tokenize=tokenizer, trg_lang=target_language), hypotheses, references)


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> SystemScore:
    """Corpus chrF (character 6-grams, β = 2, no word n-grams)."""
    from sacrebleu.metrics import CHRF

    return _corpus_score(CHRF(), hypotheses, references)


def segment_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF of each sentence."""
    from sacrebleu.metrics import CHRF

    metric = CHRF()
    pairs = zip(hypotheses, references, strict=True)
    return [round(metric.sentence_score(hypothesis, [reference]).score, _DECIMALS) for hypothesis, reference in pairs]


def _corpus_score(metric, hypotheses: Sequence[str], references: Sequence[str]) -> SystemScore:
    value = metric.corpus_score(list(hypotheses), [list(references)]).score
    return SystemScore(round(value, _DECIMALS), str(metric.get_signature()))  # a signature exists only after scoring
