from __future__ import annotations

import pytest

from entropy_valley.scoring import bleu

FOUR_OF_FIVE = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25


@pytest.mark.parametrize(
    ("hypothesis", "reference", "language"),
    [("a b c d e", "a b c d f", "en"), ("一二三四五", "一二三四六", "zh")],
)
def test_bleu_by_hand(hypothesis, reference, language):
    assert bleu.corpus_bleu([hypothesis], [reference], language).value == pytest.approx(FOUR_OF_FIVE, abs=1e-5)


def test_bleu_is_of_the_corpus_not_of_sentences():
    both = bleu.corpus_bleu(["a b c d e", "x"], ["a b c d f", "x"], "en").value
    precisions = (5 / 6) * (3 / 4) * (2 / 3) * (1 / 2)
    assert both == pytest.approx(100 * precisions**0.25, abs=1e-5)


@pytest.mark.parametrize(("language", "tokenizer"), [("zh", "zh"), ("en", "13a"), ("de", "13a"), ("fr", "13a")])
def test_signatures_name_the_tokenizer(language, tokenizer):
    signature = bleu.corpus_bleu(["a b c d"], ["a b c d"], language).signature
    assert f"tok:{tokenizer}|" in signature
    assert "version:" in signature


def test_chrf():
    hypotheses, references = ["the cat", "a dog"], ["the cat", "a fog"]
    system = bleu.corpus_chrf(hypotheses, references)
    assert "nc:6" in system.signature
    assert 0 < system.value < 100
    first, second = bleu.segment_chrf(hypotheses, references)
    assert first == 100 and 0 < second < 100


def test_an_empty_hypothesis_scores_zero():
    assert bleu.segment_chrf([""], ["a reference"]) == [0.0]
    assert bleu.corpus_bleu([""], ["a reference"], "en").value == 0
