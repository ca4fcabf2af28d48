"""Hostile texts and files, and what happens to each: the parameters of test_hostile_sentences and test_hostile_reports,
and the table in docs/reliability.md. After a change: ``python tests/hostile_cases.py``.
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- cases: begin -->\n", "<!-- cases: end -->\n"
LONG = 100_000  # characters of the longest sentence

# Characters within a sentence that stay as they are, from the file to prompt and results.
KEPT: Mapping[str, str] = {
    "start of heading U+0001": "\x01",
    "bell U+0007": "\a",
    "backspace U+0008": "\b",
    "tab U+0009": "\t",
    "vertical tab U+000B": "\v",
    "form feed U+000C": "\f",
    "carriage return U+000D within a line": "\r",
    "file separator U+001C": "\x1c",
    "escape sequence of a terminal": "\x1b[31m",
    "delete U+007F": "\x7f",
    "next line U+0085": "\x85",
    "control sequence introducer U+009B": "\x9b",
    "no-break space U+00A0": "\xa0",
    "soft hyphen U+00AD": "\xad",
    "combining grapheme joiner U+034F": "\u034f",
    "Arabic letter mark U+061C": "\u061c",
    "Mongolian vowel separator U+180E": "\u180e",
    "zero-width space U+200B": "\u200b",
    "zero-width non-joiner U+200C": "\u200c",
    "zero-width joiner U+200D": "\u200d",
    "left-to-right mark U+200E": "\u200e",
    "right-to-left mark U+200F": "\u200f",
    "line separator U+2028": "\u2028",
    "paragraph separator U+2029": "\u2029",
    "bidi embedding U+202A, U+202C": "\u202ax\u202c",
    "bidi override U+202E": "\u202egpj.exe",
    "word joiner U+2060": "\u2060",
    "bidi isolates U+2066–U+2069": "\u2066x\u2067y\u2068z\u2069",
    "ideographic space U+3000": "\u3000",
    "Hangul filler U+3164": "\u3164",
    "byte order mark U+FEFF within a text": "\ufeff",
    "variation selector U+FE0F": "\ufe0f",
    "interlinear annotation U+FFF9–U+FFFB": "\ufff9a\ufffab\ufffb",
    "replacement character U+FFFD": "\ufffd",
    "tag characters U+E0041": "\U000e0041\U000e007f",
    "private use U+E000": "\ue000",
    "private use U+10FFFD": "\U0010fffd",
    "unassigned U+0378": "\u0378",
    "noncharacter U+FDD0": "\ufdd0",
    "noncharacter U+FFFE": "\ufffe",
    "noncharacter U+FFFF": "\uffff",
    "noncharacter U+1FFFF": "\U0001ffff",
    "letter and accent apart, NFD": "e\u0301",
    "50 accents on a letter": "Z" + "\u0300\u0323" * 25,
    "fullwidth letters, which NFKC would change": "\uff1c\uff5cmask\uff5c\uff1e",
    "Arabic beside Latin": "مرحبا",
    "emoji of four joined": "👩\u200d👩\u200d👧\u200d👦",
    "a word of 10,000 letters": "x" * 10_000,
}
# What a sentence of a user's own file cannot have: the text, and what the error says.
REFUSED: Mapping[str, tuple[str, str]] = {
    "NUL U+0000": ("a\0b", "character 2 is U+0000, NUL"),
    "first half of a surrogate pair U+D800": ("a\ud800b", "character 2 is U+D800, half of a surrogate pair"),
    "second half of a surrogate pair U+DFFF": ("ab\udfff", "character 3 is U+DFFF, half of a surrogate pair"),
    "a line of 1 MB": ("x" * 2**20, "1,048,576 characters, more than the 100,000"),
    "100,001 characters": ("x" * (LONG + 1), "100,001 characters, more than the 100,000"),
}
_TEXT = "Grüße\nzwei\n"
# Files in the place of one of sentences: the bytes (None: a folder), and what the error says.
FILES: Mapping[str, tuple[bytes | None, str]] = {
    "a gzip archive": (gzip.compress(_TEXT.encode(), mtime=0), "is a gzip archive.*gunzip -c"),
    "a bzip2 archive": (codecs.encode(_TEXT.encode(), "bz2"), "is a bzip2 archive.*bunzip2"),
    "an xz archive": (b"\xfd7zXZ\0\0\4\xe6", "is an xz archive.*unxz"),
    "a zstd archive": (b"\x28\xb5\x2f\xfd\x24\x05", "is a zstd archive.*unzstd"),
    "a zip archive": (b"PK\3\4\x14\0\xff", "is a zip archive or an office document"),
    "a PNG image": (b"\x89PNG\r\n\x1a\n", "is an image.*Name a file of text"),
    "a JPEG image": (b"\xff\xd8\xff\xe0", "is an image"),
    "a PDF document": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "is a PDF document"),
    "a Parquet file": (b"PAR1\x15\0", "is a Parquet file.*huggingface"),
    "UTF-16 with its mark": (_TEXT.encode("utf-16"), "is UTF-16, .*iconv -f UTF-16 -t UTF-8"),
    "UTF-16LE without it": (_TEXT.encode("utf-16-le"), "iconv -f UTF-16LE -t UTF-8"),
    "UTF-16BE without it": (_TEXT.encode("utf-16-be"), "iconv -f UTF-16BE -t UTF-8"),
    "UTF-32": (_TEXT.encode("utf-32"), "is UTF-32, .*iconv -f UTF-32"),
    "Latin 1": (_TEXT.encode("latin-1"), r"hostile:1: not UTF-8 \(byte 0xfc\).*iconv -f LATIN1"),
    "a surrogate in UTF-8": (b"a\nb\xed\xa0\x80\n", r"hostile:2: not UTF-8 \(byte 0xed\)"),
    "an overlong NUL": (b"a\nb\xc0\x80\n", r"hostile:2: not UTF-8 \(byte 0xc0\)"),
    "a NUL byte": (b"one\ntwo\nth\0ree\n", "hostile:3: a NUL byte"),
    "CR alone at the ends of lines": (b"one\rtwo\rthree\r", r"CR alone.*tr '\\r' '\\n'"),
    "an empty file": (b"", "file is empty"),
    "a byte order mark alone": (codecs.BOM_UTF8, "file is empty"),
    "a folder": (None, "is a folder, not a file"),
    "a blank line": (b"one\n\nthree\n", "hostile:2: blank line"),
    "a table with tabs": (b"one\teins\ntwo\tzwei\n", "a table, not sentences"),
}
# Files that are read: the bytes, and their sentences.
READ: Mapping[str, tuple[bytes, list[str]]] = {
    "a byte order mark": (codecs.BOM_UTF8 + b"one\ntwo\n", ["one", "two"]),
    "CR LF": (b"one\r\ntwo\r\n", ["one", "two"]),
    "LF and CR LF mixed": (b"one\r\ntwo\nthree\r\n", ["one", "two", "three"]),
    "no newline at the end": (b"one\ntwo", ["one", "two"]),
    "a tab in one of three lines": (b"one\ttwo\nthree\nfour\n", ["one\ttwo", "three", "four"]),
}
# Marks of LaTeX, Markdown and HTML that stay text in tables and pages.
MARKUP = (
    r"\input{/etc/passwd}", r"\write18{rm x}", r"\end{tabular}", r"\\ & x \hline", "^^5cinput", "100 % of it", "a & b",
    "$5 and $6", "x_1 and _y_", "{open", "close}", "~ and ~~struck~~", "# 1", '"quoted"', r"C:\new\table", "*a* **b**",
    "`code` ``more``", "a | b || c", r"a \| b", "[text](javascript:alert(1))", "![image](http://example.org/x.png)",
    "[x]: http://example.org", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</td></table>", "<!-- x",
    "&lt;b&gt; &#60;", "<http://example.org>", "first\nsecond", "- item", "1. item", "> said", "--- | ---", "\x1b[2J",
    "\u202eabc", "\x07\x08\x7f", "{src} {metric} {wildcard}",
)  # fmt: skip
# Texts that a spreadsheet would compute.
FORMULAS = (
    "=1+1", "+1+cmd", "-2+3", "@SUM(A1)", "=cmd|' /C calc'!A0", '=HYPERLINK("http://example.org")', "\t=1", "\r=1",
    "'=1", "''-x",
)  # fmt: skip
# A config that is refused: its text, and what the error says.
YAML: Mapping[str, tuple[str, str]] = {
    "a list that repeats lists, 10⁹ values": (
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{to}: &{to} [{', '.join([f'*{of}'] * 10)}]\n" for of, to in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        "stands for more than 1,000,000 values",
    ),
    "a list that holds itself": ("a: &a [*a]\n", "holds itself"),
    "a mapping that holds itself": ("a: &a {b: *a}\n", "holds itself"),
    "a tag that runs a command": ("a: !!python/object/apply:os.system [touch X]\n", "not YAML"),
    "a tag that nobody knows": ("a: !mine x\n", "not YAML"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", "config:3: key 'a' is there already, in line 1"),
    "half of a surrogate pair": ('a: "\\ud800"\n', "half of a surrogate pair|not YAML"),
    "NUL": ('a: 1\nb: "x\\0"\n', "config:2: character 2 is U\\+0000, NUL"),
    "comments alone": ("# nothing\n", "holds no mapping"),
    "UTF-16": ("\ufeffa: 1\n", "not YAML"),
}
# Tested one by one, in the test that is named.
SINGLE: Mapping[str, tuple[str, str]] = {
    "source and target are the same file": ("refused", "test_a_copy_is_no_translation"),
    "two files of unequal length": ("refused", "test_bad_files"),
    "training file and test file are the same": ("counted", "test_test_sentences_in_training_reach_the_footnote"),
    "some test sentences are in the training file": ("counted", "test_test_sentences_in_training_reach_the_footnote"),
    "a test sentence twice": ("counted", "test_odd_sentences_are_counted"),
    "a translation that is its source": ("counted", "test_odd_sentences_are_counted"),
    "a line of zero-width characters": ("counted", "test_odd_sentences_are_counted"),
    "`hypothesis: null`": ("refused", "test_a_hypothesis_is_a_text"),
    "a test set with an id twice": ("refused", "test_an_id_comes_once"),
    "a pickle as `model.safetensors`": ("refused", "test_a_pickle_is_no_checkpoint"),
    "an archive that unpacks to terabytes": ("refused", "test_an_archive_beyond_measure_is_not_unpacked"),
    "a result that is a link to a file elsewhere": ("the link is replaced", "test_a_link_is_replaced_not_followed"),
    "`../x` as the name of a block": ("refused", "test_names_are_no_paths"),
    "a label `$x$` in a figure": ("stays text", "test_a_figure_reads_no_formula"),
}


def table(tokens: Mapping[str, str]) -> str:
    """All cases in Markdown, numbered; ``tokens`` has the families that have each special token."""
    rows = enumerate(_cases(tokens), 1)
    lines = [f"| {number} | {where} | {case} | {happens} |" for number, (where, case, happens) in rows]
    return "\n".join(["| | where | case | what happens |", "|--:|:--|:--|:--|", *lines]) + "\n"


def _cases(tokens: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    yield from (("sentence", case, "unchanged") for case in KEPT)
    yield from (("sentence", case, "refused") for case in REFUSED)
    yield from (("file of sentences", case, "refused") for case in FILES)
    yield from (("file of sentences", case, "read") for case in READ)
    yield from (("source", f"{_code(token)} of {of}", "stays text") for token, of in tokens.items())
    yield from (("table, page", _code(text), "stays text") for text in MARKUP)
    yield from (("CSV, spreadsheet", _code(text), "stays text") for text in FORMULAS)
    yield from (("config", case, "refused") for case in YAML)
    yield from (("corpus, results, names", case, happens) for case, (happens, _) in SINGLE.items())


def _code(text: str) -> str:
    unseen = re.sub(r"[^\x20-\x7e]", lambda found: f"\\u{ord(found[0]):04x}", text)
    return f"``` {unseen.replace('|', chr(92) + '|')} ```"


def special_tokens() -> dict[str, str]:
    """The special tokens of all families, and those of templates, each with the families that have it."""
    from entropy_valley.model.families import FAMILIES

    found: dict[str, list[str]] = {}
    for name, family in FAMILIES.items():
        for token in (family.mask_token, family.eos_token, family.pad_token, family.bos_token, *family.chat_tokens):
            if token and name not in found.setdefault(token, []):
                found[token].append(name)
    return {token: ", ".join(of) for token, of in found.items()} | {"{src}": "templates", "{prompt}": "templates"}


if __name__ == "__main__":
    head, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    DOCUMENT.write_text(head + BEGIN + table(special_tokens()) + END + rest.partition(END)[2], encoding="utf-8")
