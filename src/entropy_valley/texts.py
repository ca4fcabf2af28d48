"""Text: what can be in a file and in a sentence. docs/performance.md has the policy.

Only what cannot be text is refused. Whatever else is in a text is passed on as it is.
"""

import re
import shlex
import unicodedata
from pathlib import Path

from entropy_valley.errors import InputError

LONGEST_SENTENCE = 100_000  # characters of a sentence; a file without line breaks is one line of more
_IMPOSSIBLE = re.compile("[\0\ud800-\udfff]")
# Control characters, marks that turn the text behind them around, and code points that are not characters.
_UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_HIDDEN = ("Cc", "Cf", "Zl", "Zp")
_INVISIBLE = ("Zs", *_HIDDEN)
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def lines(path: Path, content: bytes) -> list[str]:
    """The lines of a file with this content, without their newline: LF or CR LF, and without a byte order mark.

    Raises InputError for an empty file, and for what is not UTF-8.
    """
    text = decoded(path, content).removeprefix("\ufeff")
    if text in ("", "\n"):
        raise InputError(path, "file is empty", "Fill it. If a job has made it, remove it and run again.")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def decoded(path: object, content: bytes, before: int = 0) -> str:
    """The text of a file from a line on, ``before`` which so many stand. Raises InputError for what is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"{path}:{before + content.count(bytes([10]), 0, error.start) + 1}"
        convert = f"Convert it, for example: iconv -f LATIN1 -t UTF-8 {shlex.quote(str(path))} > FILE"
        remedy = f"{convert}; unpack an archive; save a document as plain text."
        raise InputError(place, f"not UTF-8 (byte {content[error.start]:#04x})", remedy) from None


def checked_sentence(place: object, text: str) -> str:
    """The text, stripped. Raises InputError for characters that no text has, and for more than a sentence may have."""
    stripped = text.strip()
    if match := _IMPOSSIBLE.search(stripped):
        problem = f"character {match.start() + 1} is U+{ord(match[0]):04X}, which no text has"
        raise InputError(place, problem, "Remove it from the text.")
    if len(stripped) > LONGEST_SENTENCE:
        problem = f"{len(stripped):,} characters, more than the {LONGEST_SENTENCE:,} that a sentence may have"
        raise InputError(place, problem, "Give a sentence in each line.")
    return stripped


def visible(text: str) -> bool:
    """Whether a text has a character that can be seen: not only blanks, control and formatting characters."""
    return any(unicodedata.category(character) not in _INVISIBLE for character in text)


def hidden(text: str) -> int:
    """How many characters of a text only control or format it, such as zero-width spaces and ends of lines."""
    if text.isprintable():  # has none; most texts are, and it takes no time
        return 0
    return sum(unicodedata.category(character) in _HIDDEN for character in text)


def shown(text: str) -> str:
    """The text on one line, for print: a blank for white space, U+001B and the like for what would change the rest."""
    return _UNSEEN.sub(lambda match: f"U+{ord(match[0]):04X}", re.sub(r"\r\n|\s", " ", text))


def base_language(code: str) -> str:
    """``zh`` of ``zh_tw``: a language without its script or region."""
    return code.partition("_")[0]


def counted(count: int, noun: str) -> str:
    """``1 job``, ``3 jobs``, ``8 processes``."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def guarded(text: str) -> str:
    """A text for a CSV file: an apostrophe is put before one that a spreadsheet would read as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """The inverse of :func:`guarded`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text[1:]) else text
