"""Categories of source sentences that a source-guided order may translate better: dates, lists, names, numbers.

The paper names four categories without definitions. These are heuristics on the plain text; a sentence may have several
categories. They find less where the script does not mark a category: names in Chinese, or names among German nouns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from entropy_valley.errors import InputError

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


def _list_of(*conjunctions: str) -> re.Pattern[str]:
    """Matches three or more items of at most three words: "A, B and C"."""
    return re.compile(rf"{_ITEM}, {_ITEM},? (?:{'|'.join(conjunctions)}) \w")


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


def _found(pattern: str | re.Pattern[str]) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.search(text) is not None


def _rules(date: re.Pattern[str], conjunctions: tuple[str, ...], names: Callable[[str], bool]) -> dict[str, Callable]:
    rules = (_found(date), _found(_list_of(*conjunctions)), names, _found(NUMBER))
    return dict(zip(CATEGORIES, rules, strict=True))


_RULES: Mapping[str, Mapping[str, Callable[[str], bool]]] = {
    "en": _rules(_ENGLISH.date(), ("and", "or", "&"), _names),
    "fr": _rules(_FRENCH.date(), ("et", "ou"), _names),
    "de": _rules(_GERMAN.date(), ("und", "oder"), _german_names),
    "zh": {  # no spaces, no capitals: foreign names in Latin letters, transliterated ones by their dot, titles
        "dates": _found(_CHINESE_DATE),
        "enumeration": _found("、"),
        "named entities": _found(rf"{PLACEHOLDER.pattern}|[A-Z][A-Za-z]+|[\u4e00-\u9fff][·•・][\u4e00-\u9fff]|《"),
        "numbers": _found(r"\d"),
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
            f"Use sources in {', '.join(_RULES)}, or add the language to entropy_valley.corpus.categories.",
        )
    return tuple(name for name, found in _RULES[language].items() if found(text))
