"""Compare the numbers that README and docs quote with the CSV files that they come from.

    python docs/check_numbers.py                    # README.md and docs/*.md against results/demo, results/tatoeba, …
    python docs/check_numbers.py --write README.md  # put in what the CSV files say

A comment after a text says where the text's numbers come from. It belongs to all that stands between it and the
heading or the comment before it:

    <!-- numbers
    results/demo/tables/main.csv metric=bleu backbone=llada-tiny
    49.30 ± 0.53: mean(direction="en-zh", method="ratio"); std(direction="en-zh", method="ratio")
    0.70: stated
    -->

A line with a file says where the following lines look, and under which conditions. A line with a text gives one Python
expression for each number of the text, with ``;`` between them. In it, each column of the file is a function: of the
rows that meet the conditions, it returns the column as a pandas series by run, so that
``(closure(method="a") > closure(method="b")).sum()`` compares run with run. A number with % is 100 times the value.
``stated``, in place of expressions, marks numbers that are in no result. The texts are searched one behind the other.
Such a comment must mark every number with a decimal point that is not in code.
"""

from __future__ import annotations

import argparse
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd

from entropy_valley.stats.paper_numbers import select

ROOT = Path(__file__).resolve().parents[1]
COMMENT = re.compile(r"<!-- numbers\n(.*?)\n-->", re.DOTALL)
START = re.compile(r"^#+ .*$|-->", re.MULTILINE)  # where the text of a comment begins: behind the last of these
NUMBER = re.compile(r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?")
DECIMAL = re.compile(r"\d+\.\d+")
CODE = re.compile(r"`[^`]*`")
PERCENT = re.compile(r"(?: ± [\d.]+)? ?%")  # behind a number: it is a share
STATED = "stated"


@dataclass(frozen=True)
class Mark:
    """A text with numbers, where they come from, and where it stands: start and end in the document."""

    text: str
    expressions: tuple[str, ...]
    file: str
    where: dict[str, str]
    span: tuple[int, int]
    line: int


@dataclass
class Outcome:
    """The outcome for a document: problems, how many numbers are right, files that are missing; and the new text."""

    problems: list[str] = field(default_factory=list)
    right: int = 0
    absent: set[str] = field(default_factory=set)
    text: str = ""


def check(path: Path, results: Callable[[str], Path], write: bool = False) -> Outcome:
    """Check a document, and with ``write`` correct it. ``results`` says where a file of results is."""
    outcome = Outcome(text=path.read_text(encoding="utf-8"))
    changes = []
    for mark in marks(outcome):
        table = results(mark.file)
        if not table.exists():
            outcome.absent.add(mark.file)
            continue
        try:
            text = quoted(mark, pd.read_csv(table, dtype=str, keep_default_na=False))
        except Exception as error:  # an expression may raise anything
            outcome.problems.append(f"{path.name}:{mark.line}: {mark.text}: {mark.file}: {error}")
            continue
        if text == mark.text:
            outcome.right += len(mark.expressions)
        elif write:
            changes.append((mark, text))
        else:
            outcome.problems.append(f"{path.name}:{mark.line}: {mark.text}: {mark.file} says {text}")
    outcome.text = _changed(outcome.text, changes)
    if write:
        path.write_text(outcome.text, encoding="utf-8")
    return outcome


def marks(outcome: Outcome) -> Iterator[Mark]:
    """The marks of a document in its order. Those that do not fit become problems of ``outcome``."""
    document = outcome.text
    for comment in COMMENT.finditer(document):
        begin = max((match.end() for match in START.finditer(document, 0, comment.start())), default=0)
        place, spans, file, where = begin, [], "", {}
        for line in comment[1].splitlines():
            try:
                if ": " not in line:
                    file, *conditions = shlex.split(line)
                    where = dict(condition.split("=", 1) for condition in conditions)
                    continue
                mark = _mark(document, line, (file, where), place, comment.start())
            except ValueError as error:
                outcome.problems.append(f"{line!r}: {error}")
                continue
            place = mark.span[1]
            spans.append(mark.span)
            if mark.expressions:
                yield mark
        spans += [code.span() for code in CODE.finditer(document, begin, comment.start())]
        for number in DECIMAL.finditer(document, begin, comment.start()):
            if not any(first <= number.start() and number.end() <= last for first, last in spans):
                outcome.problems.append(f"line {_line(document, number.start())}: {number[0]} has no mark")


def _mark(document: str, line: str, source: tuple[str, dict[str, str]], start: int, end: int) -> Mark:
    """The mark of a line; its text stands between ``start`` and ``end``."""
    text, _, listed = line.rpartition(": ")
    match = re.compile(r"\s+".join(map(re.escape, text.split()))).search(document, start, end)
    if not match:
        raise ValueError("this text does not stand before the comment, in this order")
    expressions = () if listed == STATED else tuple(one.strip() for one in listed.split(";"))
    if expressions and len(expressions) != (numbers := len(NUMBER.findall(text))):
        raise ValueError(f"{numbers} numbers, but {len(expressions)} expressions")
    return Mark(text, expressions, *source, match.span(), _line(document, match.start()))


def _line(document: str, place: int) -> int:
    return document.count("\n", 0, place) + 1


def quoted(mark: Mark, rows: pd.DataFrame) -> str:
    """The mark's text, with the numbers of its file."""
    columns = {name: partial(select, rows, name, **mark.where) for name in rows}
    expressions = iter(mark.expressions)

    def number(match: re.Match[str]) -> str:
        value = eval(next(expressions), {"__builtins__": {}}, columns)
        if isinstance(value, pd.Series):
            if len(value) != 1:
                raise ValueError(f"{len(value)} rows; say which, or take their mean")
            value = value.item()
        if not math.isfinite(value):
            raise ValueError("no number there")
        value = (100 if PERCENT.match(mark.text, match.end()) else 1) * value + 0.0
        decimals = len(match[0].partition(".")[2])
        text = f"{value:,.{decimals}f}" if "," in match[0] else f"{value:.{decimals}f}"
        return text.replace("-", "−") if "−" in mark.text or "-" not in match[0] else text

    return NUMBER.sub(number, mark.text)


def _changed(document: str, changes: Sequence[tuple[Mark, str]]) -> str:
    """The document with new numbers, in its text and in the comments."""
    for mark, text in reversed(changes):
        start, end = mark.span
        blanks = re.split(r"(\s+)", document[start:end])[1::2]
        new = "".join(word + space for word, space in zip(text.split(), [*blanks, ""], strict=True))
        source = "; ".join(mark.expressions)
        behind = document[end:].replace(f"\n{mark.text}: {source}", f"\n{text}: {source}", 1)
        document = document[:start] + new + behind
    return document


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", nargs="*", type=Path, help="default: README.md and docs/*.md")
    parser.add_argument("--write", action="store_true", help="correct the numbers")
    parser.add_argument("--demo", type=Path, help="where results/demo is")
    options = parser.parse_args()
    failed = False
    for path in options.documents or documents():
        outcome = check(path, located(options.demo), options.write)
        print(*outcome.problems, sep="\n", end="\n" * bool(outcome.problems))
        absent = ", ".join(sorted(outcome.absent)) or "none"
        print(f"{path.name}: {outcome.right} numbers are right; missing files: {absent}")
        failed |= bool(outcome.problems)
    return int(failed)


def documents() -> list[Path]:
    """README and docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def located(demo: Path | None) -> Callable[[str], Path]:
    """Where a file of results is: in the checkout, but for the demo's where ``demo`` says so."""
    prefix = "results/demo/"
    return lambda file: demo / file.removeprefix(prefix) if demo and file.startswith(prefix) else ROOT / file


if __name__ == "__main__":
    sys.exit(main())
