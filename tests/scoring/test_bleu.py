import re

import pytest

from entropy_valley.scoring.metrics import Bleu, Chrf, ScoringJob

FOUR_OF_FIVE = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25


def ready(metric, language="en"):
    metric.prepare(ScoringJob(language))
    return metric


def bleu(hypotheses, references, language="en", **settings):
    return ready(Bleu(**settings), language).system_score(hypotheses, hypotheses, references)


def signature(language, **settings):
    metric = ready(Bleu(**settings), language)
    metric.system_score(["s"], ["a b c d"], ["a b c d"])
    return metric.signature


@pytest.mark.parametrize(
    ("hypothesis", "reference", "language"), [("a b c d e", "a b c d f", "en"), ("一二三四五", "一二三四六", "zh")]
)
def test_bleu_by_hand(hypothesis, reference, language):
    assert bleu([hypothesis], [reference], language) == pytest.approx(FOUR_OF_FIVE, abs=1e-5)


@pytest.mark.parametrize(("language", "tokenizer"), [("zh", "zh"), ("en", "13a")])
def test_signatures_name_the_tokenizer(language, tokenizer):
    assert f"tok:{tokenizer}|" in signature(language)
    assert "version:" in signature(language)
    assert "tok:char|" in signature(language, tokenize="char")


@pytest.mark.parametrize(
    ("target", "tokenizer"),
    [("zh_tw", "zh"), ("zh_hant", "zh"), ("yue", "zh"), ("ja_jp", "ja-mecab"), ("sr_latn", None)],
)
def test_a_script_or_a_region_has_the_tokenizer_of_its_language(target, tokenizer):
    assert Bleu().of(f"en-{target}") == Bleu(tokenize=tokenizer)
    assert Bleu(tokenize="char").of(f"en-{target}").tokenize == "char"
    assert Bleu().of("en-zh") == Bleu()


@pytest.mark.parametrize("language", ["th", "km", "lo", "my", "th_th"])
def test_a_language_without_blanks_between_words_needs_a_tokenizer(language):
    assert re.search(r"splits at blanks.* Set `tokenize` to flores200, or to char", Bleu().refused(language))
    assert not Bleu(tokenize="char").refused(language)


@pytest.mark.parametrize(("language", "module"), [("ja", "tokenizer_ja_mecab"), ("ko", "tokenizer_ko_mecab")])
def test_a_missing_tokenizer_is_one_clear_error(language, module, monkeypatch):
    monkeypatch.setattr(f"sacrebleu.tokenizers.{module}.MeCab", None)
    assert re.search(rf"pip install sacrebleu\[{language}\].*`tokenize`", Bleu().refused(language))
    assert not Bleu(tokenize="char").refused(language)


@pytest.mark.parametrize(("settings", "signature"), [({}, "nc:6|nw:0"), ({"word_order": 2}, "nw:2")], ids=str)
def test_chrf(settings, signature):
    metric, texts = ready(Chrf(**settings)), (["the cat", "a dog"], ["the cat", "a dog"], ["the cat", "a fog"])
    first, second = metric.segment_scores(*texts)
    assert first == 100 and 0 < second < 100 > metric.system_score(*texts) > 0
    assert signature in metric.signature
