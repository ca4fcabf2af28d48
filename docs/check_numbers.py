"""Compare the numbers that README and docs quote with the tables that they come from.

    python docs/check_numbers.py                                  # all pages
    python docs/check_numbers.py --write docs/numbers/README.txt  # put in what the tables say

The tables are committed: ours in docs/numbers/results, by `make findings`, with an `origin.json` that says from which
commit and config and on which CPU they were made; the paper's numbers in stats/paper/numbers.csv.

A file in docs/numbers says where the numbers of its page come from: `README.txt` is that of the README, `findings.txt`
that of `docs/findings.md`. A heading of the page begins the lines for the text up to the page's next heading:

    ## The result
    findings/main.csv metric=bleu backbone=llada-tiny
    49.30 ± 0.53: mean(direction="en-zh", method="ratio"); std(direction="en-zh", method="ratio")
    paper label=tab:main metric=bleu
    34.2: value(backbone="llada-8b", direction="en-zh", system="ev")
    0.70: stated

A line with a file says where the following lines look, and under which conditions; `paper` has the paper's numbers. A
line with a text gives one Python expression for each number of the text, with ``;`` between them. In it, each column of
the file is a function: of the rows that meet the conditions, it returns the column as a pandas series by run, so that
``(closure(method="a") > closure(method="b")).sum()`` compares run with run. A number with % is 100 times the value.
``stated``, in place of expressions, marks numbers that are in no result. The texts are searched one behind the other.
Under a heading with such lines, every number with a decimal point that is not in code must have a mark. A count such as
``9 of 9`` is a claim: it must have expressions, wherever it stands in the page.
"""

import argparse
import math
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd

from entropy_valley.experiment.stats import paper_numbers

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/numbers/results"
PAPER = "paper"
HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
NUMBER = re.compile(r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?")
DECIMAL = re.compile(r"\d+\.\d+")
COUNT = re.compile(r"\b\d[\d,]* of \d[\d,]*\b")
CODE = re.compile(r"`[^`]*`")
PERCENT = re.compile(r"(?: ± [\d.]+)? ?%")  # behind a number: it is a share
STATED = "stated"


@dataclass(frozen=True)
class Mark:
    """A text with numbers, where they come from, and where it stands: start and end in the page."""

    text: str
    expressions: tuple[str, ...]
    file: str
    where: dict[str, str]
    span: tuple[int, int]
    line: int


@dataclass
class Outcome:
    """The outcome for a page: problems, and how many numbers are right."""

    problems: list[str] = field(default_factory=list)
    right: int = 0


def check(page: Path, numbers: Path, results: Path = RESULTS, write: bool = False) -> Outcome:
    """Check a page, and with ``write`` correct it and its marks. ``results``: the folder of our tables."""
    outcome = Outcome()
    text, lines = page.read_text(encoding="utf-8"), numbers.read_text(encoding="utf-8")
    changes = []
    for mark in marks(text, lines, outcome):
        try:
            new = quoted(mark, table(mark.file, results))
        except Exception as error:  # an expression may raise anything, and the file may be missing
            outcome.problems.append(f"{page.name}:{mark.line}: {mark.text}: {mark.file}: {error}")
            continue
        if new == mark.text:
            outcome.right += len(mark.expressions)
        elif write:
            changes.append((mark, new))
        else:
            outcome.problems.append(f"{page.name}:{mark.line}: {mark.text}: {mark.file} says {new}")
    if changes:
        text, lines = _changed(text, lines, changes)
        page.write_text(text, encoding="utf-8")
        numbers.write_text(lines, encoding="utf-8")
    return outcome


def table(file: str, results: Path) -> pd.DataFrame:
    """The rows of a table, as texts: of a file of ours, or the paper's numbers, shares as fractions of 1."""
    if file != PAPER:
        return pd.read_csv(results / file, dtype=str, keep_default_na=False)
    rows = paper_numbers.numbers().values()
    columns = ("label", "backbone", "direction", "setting", "system", "metric")
    return pd.DataFrame(
        [{**dict(zip(columns, row.key, strict=True)), "value": str(row.value / row.scale)} for row in rows]
    )


def marks(text: str, lines: str, outcome: Outcome) -> Iterator[Mark]:
    """The marks of a page. Those that do not fit become problems of ``outcome``, and claims without one."""
    claims: list[tuple[int, int]] = [code.span() for code in CODE.finditer(text)]
    for block in re.split(r"\n(?=#)", lines.strip()):
        heading, *listed = block.strip().splitlines()
        sections = [match for match in HEADING.finditer(text) if match[0] == heading]
        if len(sections) != 1:
            outcome.problems.append(f"{heading!r}: {len(sections)} sections of the page have this heading")
            continue
        begin = sections[0].end()
        following = HEADING.search(text, begin)
        for mark in _section(text, (begin, following.start() if following else len(text)), listed, outcome):
            claims.append(mark.span)
            yield mark
    _require(COUNT, "is a claim without an expression", text, (0, len(text)), claims, outcome)


def _section(text: str, section: tuple[int, int], listed: Sequence[str], outcome: Outcome) -> Iterator[Mark]:
    """The marks of the page's text from ``section[0]`` to ``section[1]``."""
    begin, end = section
    place, file, where = begin, "", {}
    spans = [code.span() for code in CODE.finditer(text, begin, end)]
    for line in listed:
        try:
            if ": " not in line:
                file, *conditions = shlex.split(line)
                where = dict(condition.split("=", 1) for condition in conditions)
                continue
            mark = _mark(text, line, (file, where), place, end)
        except ValueError as error:
            outcome.problems.append(f"{line!r}: {error}")
            continue
        place = mark.span[1]
        spans.append(mark.span)
        if mark.expressions:
            yield mark
    _require(DECIMAL, "has no mark", text, section, spans, outcome)


def _require(
    pattern: re.Pattern[str],
    problem: str,
    text: str,
    section: tuple[int, int],
    spans: Sequence[tuple[int, int]],
    outcome: Outcome,
) -> None:
    """Each match in a section stands inside of one of the spans; else it is a problem."""
    for match in pattern.finditer(text, *section):
        if not any(first <= match.start() and match.end() <= last for first, last in spans):
            outcome.problems.append(f"line {_line(text, match.start())}: {match[0]} {problem}")


def _mark(page: str, line: str, source: tuple[str, dict[str, str]], start: int, end: int) -> Mark:
    """The mark of a line; its text stands between ``start`` and ``end``."""
    text, _, listed = line.rpartition(": ")
    match = re.compile(r"\s+".join(map(re.escape, text.split()))).search(page, start, end)
    if not match:
        raise ValueError("this text does not stand under this heading, in this order")
    expressions = () if listed == STATED else tuple(one.strip() for one in listed.split(";"))
    if expressions and len(expressions) != (numbers := len(NUMBER.findall(text))):
        raise ValueError(f"{numbers} numbers, but {len(expressions)} expressions")
    return Mark(text, expressions, *source, match.span(), _line(page, match.start()))


def _line(page: str, place: int) -> int:
    return page.count("\n", 0, place) + 1


def select(rows: pd.DataFrame, column: str, /, **where: str) -> pd.Series:
    """A column in the rows that meet the conditions, by their run; empty is NaN. ``rows`` are texts, as in the file."""
    if unknown := {column, *where} - set(rows):
        raise ValueError(f"no column {', '.join(sorted(unknown))}")
    for key, value in where.items():
        rows = rows[rows[key] == value]
    if rows.empty:
        raise ValueError(f"0 rows with {where}")
    values = rows.set_index([key for key in ("backbone", "direction", "testset", "seed") if key in rows])[column]
    if not values.index.is_unique:
        raise ValueError(f"{len(values)} rows with {where}, more than one a run")
    return pd.to_numeric(values)


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


def _changed(page: str, lines: str, changes: Sequence[tuple[Mark, str]]) -> tuple[str, str]:
    """The page and the lines of its marks, with new numbers."""
    for mark, text in reversed(changes):
        start, end = mark.span
        blanks = re.split(r"(\s+)", page[start:end])[1::2]
        new = "".join(word + space for word, space in zip(text.split(), [*blanks, ""], strict=True))
        page = page[:start] + new + page[end:]
        source = "; ".join(mark.expressions)
        lines = lines.replace(f"\n{mark.text}: {source}", f"\n{text}: {source}", 1)
    return page, lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", nargs="*", type=Path, help="default: docs/numbers/*.txt")
    parser.add_argument("--write", action="store_true", help="correct the numbers")
    options = parser.parse_args()
    failed = False
    for numbers in options.numbers or all_numbers():
        outcome = check(page_of(numbers), numbers, write=options.write)
        print(*outcome.problems, sep="\n", end="\n" * bool(outcome.problems))
        print(f"{numbers.stem}: {outcome.right} numbers are right")
        failed |= bool(outcome.problems)
    return int(failed)


def all_numbers() -> list[Path]:
    """The files of docs/numbers."""
    return sorted((ROOT / "docs/numbers").glob("*.txt"))


def page_of(numbers: Path) -> Path:
    """The page that a file of docs/numbers belongs to."""
    return ROOT / "README.md" if numbers.stem == "README" else ROOT / f"docs/{numbers.stem}.md"


if __name__ == "__main__":
    sys.exit(main())
