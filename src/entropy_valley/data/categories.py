"""Dates, lists, names and numbers in source sentences, by two sets of rules; the challenge subset of a test set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from entropy_valley.data.sampling import Pair, rank, shortage
from entropy_valley.errors import InputError
from entropy_valley.texts import base_language

# --- Categories of source sentences that a source-guided order may translate better: dates, lists, names, numbers.
#
# The paper names four categories without definitions. These are heuristics on the plain text; a sentence may have
# several categories. They find less where the script does not mark a category: names in Chinese, or names among
# German nouns.


CATEGORIES = ("dates", "enumeration", "named entities", "numbers")  # the paper's, in its order
NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*%?\b")
PLACEHOLDER = re.compile(r"#[A-Z_]+#")  # WMT22's, in place of names
_YEAR = r"\b(?:1[5-9]|20)\d\d\b"
_NUMERIC = r"\b\d{1,4}([-/.])\d{1,2}\1\d{2,4}\b"  # 10/12/21, 2021-12-10
_WORD = r"[\w'’.&#-]+"
_ITEM = rf"{_WORD}(?: {_WORD}){{0,2}}"


@dataclass(frozen=True)
class Calendar:
    """Names of months and days as regular expressions; some names of ``months`` may have other meanings too."""

    months: str
    days: str

    def date(self) -> re.Pattern[str]:
        """Matches a day of the week, a month next to a number, a year of four digits, or a date in digits."""
        day = r"\d{1,2}(?:st|nd|rd|th|er|\.)?(?: of| de)?"
        month = rf"\b{day} (?:{self.months})\b|\b(?:{self.months})\.? \d{{1,4}}\b"
        return re.compile(rf"{_NUMERIC}|{_YEAR}|\b(?:{self.days})\b|{month}")


_ENGLISH = Calendar(
    "January|February|March|April|May|June|July|August|September|October|November|December"
    "|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec",
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?",
)
_GERMAN = Calendar(
    "Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
    r"(?:(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch|Sonnabend)s?",
)
_FRENCH = Calendar(
    "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
    r"(?:lun|mar|mercre|jeu|vendre|same)dis?|dimanches?",
)
_CHINESE_DATE = rf"{_NUMERIC}|\d{{4}} ?年|\d{{1,2}} ?月|(?:星期|周|礼拜)[一二三四五六日天](?![次年个天])"


_CAPITALISED = re.compile(r"[^\W\d_a-z]\w+")
_ACRONYM = re.compile(r"[^\W\d_a-zäöüß][A-Z0-9]+|\w+[a-zäöüß][A-Z]\w*")  # EU, G7, iPhone
_OPENING = frozenset('.!?:“„"')  # before a capital letter that marks no name
_POLITE = "Sie|Ihnen|Ihre?[mnrs]?"
_NO_NAMES = re.compile("|".join([_ENGLISH.months, _ENGLISH.days, _GERMAN.months, _GERMAN.days, _POLITE, "I[’'].*"]))


def _inner_words(text: str) -> list[str]:
    """Words and punctuation without the first word of each sentence, which is always capitalised."""
    words = re.findall(r"\w[\w'’-]*|[^\w\s]", PLACEHOLDER.sub(" ", text))
    return [word for before, word in zip([".", *words], words, strict=False) if before not in _OPENING]


def _is_name(word: str) -> bool:
    return bool(_CAPITALISED.match(word)) and not _NO_NAMES.fullmatch(word)


def _names(text: str) -> bool:
    """Finds a placeholder, or a capitalised word inside a sentence that is not a month or day."""
    return bool(PLACEHOLDER.search(text)) or any(map(_is_name, _inner_words(text)))


def _german_names(text: str) -> bool:
    """German capitalises all nouns. Finds a placeholder, an acronym, or two capitalised words in a row."""
    words = _inner_words(text)
    pairs = any(map(lambda one, two: _is_name(one) and _is_name(two), words, words[1:]))
    return bool(PLACEHOLDER.search(text)) or pairs or any(map(_ACRONYM.fullmatch, words))


def _matches(pattern: str | re.Pattern[str]) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.search(text) is not None


def _rules(date: re.Pattern[str], conjunctions: str, names: Callable[[str], bool]) -> dict[str, Callable]:
    """By category. An enumeration has three or more items of at most three words: "A, B and C"."""
    enumeration = rf"{_ITEM}, {_ITEM},? (?:{conjunctions}) \w"
    return dict(zip(CATEGORIES, (_matches(date), _matches(enumeration), names, _matches(NUMBER)), strict=True))


_RULES: Mapping[str, Mapping[str, Callable[[str], bool]]] = {
    "en": _rules(_ENGLISH.date(), "and|or|&", _names),
    "fr": _rules(_FRENCH.date(), "et|ou", _names),
    "de": _rules(_GERMAN.date(), "und|oder", _german_names),
    "zh": {  # no spaces, no capitals: foreign names in Latin letters, transliterated ones by their dot, titles
        "dates": _matches(_CHINESE_DATE),
        "enumeration": _matches("、"),
        "named entities": _matches(rf"{PLACEHOLDER.pattern}|[A-Z][A-Za-z]+|[\u4e00-\u9fff][·•・][\u4e00-\u9fff]|《"),
        "numbers": _matches(r"\d"),
    },
}
LANGUAGES = tuple(_RULES)


def categories(text: str, language: str) -> tuple[str, ...]:
    """The :data:`CATEGORIES` of a sentence, in their order; most sentences have none.

    Raises InputError for a language without rules.
    """
    if language not in _RULES:
        raise InputError(
            f"categories of {language} sentences",
            "no rules for this language",
            f"Use sources in {', '.join(_RULES)}, or add the language to entropy_valley.data.categories.",
        )
    return tuple(name for name, matches in _RULES[language].items() if matches(text))


# --- Categories of English sentences by the rules of the paper's authors, as their code has them: docs/protocol.md.
#
# On WMT22's English sources, the first 400 sentences with a category have exactly the paper's counts.

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_ORDINALS = "first|second|third|fourth|fifth"
_DATES = (
    rf"\b(?:{_MONTHS})\s+\d+",
    rf"\b(?:{_DAYS})\b",
    r"\b\d{1,2}[/-]\d{1,2}[/-]\d{2,4}\b",
    r"\b\d{4}[-/]\d{1,2}[-/]\d{1,2}\b",
)
_ENUMERATION = (
    rf"\b(?:{_ORDINALS})\b.*\b(?:{_ORDINALS})\b",
    r",\s*(?:and|or)\s",  # with their rule for "A, B, and C", which this one contains
    r"\b\d+\)\s",
)
_NUMBERS = (
    r"\b\d{2,}\b",  # with their rule for years
    r"\b\d+[,.]\d+\b",
    r"\d+%",
    r"\$\d+",
    r"\d+\s*(?:million|billion|thousand|hundred)",
)


def _any(*patterns: str) -> Callable[[str], bool]:
    return _matches(re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE))


def _named_entities(text: str) -> bool:
    """Two words after the first that begin with a capital, have another letter, and are not all capitals.

    "#PRS_ORG#," is not such a word, "Sign" is one.
    """
    capitalised = (word for word in text.split()[1:] if word[0].isupper() and not word.isupper() and len(word) > 1)
    return sum(1 for _ in capitalised) >= 2


RULES: Mapping[str, Callable[[str], bool]] = {
    "dates": _any(*_DATES),
    "enumeration": _any(*_ENUMERATION),
    "named entities": _named_entities,
    "numbers": _any(*_NUMBERS),
}
"""By category, in the paper's order."""


def published_categories(text: str) -> tuple[str, ...]:
    """The categories of an English sentence, in the paper's order; it may have several, or none."""
    return tuple(name for name, matches in RULES.items() if matches(text))


# --- The challenge subset of a test set: sentences with dates, lists, names or numbers, by one of two sets of rules.
#
# ``first``, that of the authors' code: the first sentences of the file that have a category by their rules, which are
# for the English side of a pair. ``stratified``, ours: drawn by the keyed hash, with as many of each category as
# possible, by our rules for the source side.

ChallengeRules = Literal["first", "stratified"]
Numbered = tuple[int, Pair]


def refused(direction: str, rules: ChallengeRules) -> str | None:
    """Why rules find no categories in a direction; None if it does."""
    sides = [base_language(code) for code in direction.split("-")]
    if rules == "first":
        return None if "en" in sides else f"the rules are for English, and {direction} has no such side"
    return None if sides[0] in LANGUAGES else f"no categories for sources in {sides[0]}"


def categories_of(pair: Pair, direction: str, rules: ChallengeRules) -> tuple[str, ...]:
    """The categories of a (source, target) pair; InputError where :func:`refused` has a reason."""
    if problem := refused(direction, rules):
        remedy = "Set `corpus.challenge: stratified`" if rules == "first" else "Choose another direction"
        raise InputError(f"challenge subset: {direction}", problem, f"{remedy}, or name another test set.")
    sides = [base_language(code) for code in direction.split("-")]
    if rules == "first":
        return published_categories(pair[sides.index("en")])
    return categories(pair[0], sides[0])


def challenge(
    numbered: Iterable[Numbered], size: int, seed: int, direction: str, rules: ChallengeRules
) -> list[Numbered]:
    """``size`` numbered pairs that have a category, in the order of the file.

    Raises InputError if there are too few.
    """
    labelled = {item: categories for item in numbered if (categories := categories_of(item[1], direction, rules))}
    drawn = list(islice(labelled, size)) if rules == "first" else _stratified(labelled, size, seed)
    if len(drawn) < size:
        raise shortage(len(drawn), size, "challenge subset")
    return sorted(drawn)


def _stratified(labelled: dict[Numbered, tuple[str, ...]], size: int, seed: int) -> Sequence[Numbered]:
    """For each category, from the rarest to the most frequent, pairs are drawn by rank until ⌊``size`` / 4⌋ drawn pairs
    have it or no more exist. The rest is drawn by rank among all pairs with a category.
    """
    ranked = sorted(labelled, key=lambda item: (rank(item[1], seed), item[0]))
    strata = [[item for item in ranked if category in labelled[item]] for category in CATEGORIES]
    drawn: dict[Numbered, None] = {}
    for having in sorted(strata, key=len):  # of equally frequent ones the paper's first
        missing = size // len(CATEGORIES) - sum(item in drawn for item in having)
        drawn |= dict.fromkeys([item for item in having if item not in drawn][: max(0, missing)])
    return list(drawn | dict.fromkeys([item for item in ranked if item not in drawn][: size - len(drawn)]))
