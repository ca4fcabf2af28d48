"""What a run will do, in a screenful: for each rule how many jobs, for which cells, and why."""

from __future__ import annotations

import ast
import itertools
import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from entropy_valley.differences import Difference, differences

WIDTH = 160  # columns of a line
CELLS = (60, 108)  # columns for the cells of a rule: the fewest, and the most if the reasons are short
REASONS = 4  # most reasons for the jobs of a rule
LINES = 3  # most lines of a rule's cells
GLUE = "\u00a0"  # a space at which no line ends
PLURALS = {"testset": "test sets", "study": "studies", "steps": "step budgets"}


@dataclass(frozen=True)
class Job:
    """A job that will run. ``why`` is empty if only rules that run before it, those of ``after``, are the reason."""

    rule: str
    wildcards: Mapping[str, str]
    why: str
    after: tuple[str, ...] = ()


def summary(jobs: Sequence[Job]) -> str:
    """How many jobs, then a table: a row for each rule, in the order of ``jobs``, of at most WIDTH columns.

    There may be none: `--until` a rule that is done.
    """
    if not jobs:
        return "Nothing to be done.\n"
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.rule, []).append(job)
    reasons = {rule: _reasons(group) for rule, group in groups.items()}
    name, longest = max(map(len, groups)), max(map(len, reasons.values()))
    room = min(max(CELLS[0], WIDTH - name - 11 - longest), CELLS[1])
    rows = [["rule", "jobs", "cells (a × b: all combinations; a, b: some of them)", "why"]]
    rows += [
        [rule, str(len(group)), cells([job.wildcards for job in group], room), reasons[rule]]
        for rule, group in groups.items()
    ]
    lines = [line for row in rows for line in _lines(row, (name, 5, room, WIDTH - name - room - 11))]
    return "\n".join([f"{len(jobs)} job{'s' * (len(jobs) > 1)}:", "", *lines, ""])


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row of a table, its texts wrapped into columns."""
    wrapped = [_wrapped(text, width) for text, width in zip(row, widths, strict=True)]
    for rule, count, *texts in itertools.zip_longest(*wrapped, fillvalue=""):
        cell, why = (f"{text:<{width}}" for text, width in zip(texts, widths[2:], strict=True))
        yield f"{rule:<{widths[0]}}  {count:>{widths[1]}}  {cell}  {why}".replace(GLUE, " ").rstrip()


def _reasons(jobs: Sequence[Job]) -> str:
    """Why the jobs of a rule run; with how many of them where reasons differ."""
    after = sorted({rule for job in jobs if not job.why for rule in job.after})
    follows = f"input from {', '.join(after) if len(after) < 4 else f'{len(after)} rules'}" if after else "always runs"
    counts = Counter(job.why or follows for job in jobs)
    said = [f"{why} ({count})" if len(counts) > 1 else why for why, count in counts.most_common(REASONS)]
    return "; ".join([*said, *[f"… ({len(counts)} reasons)"] * (len(counts) > REASONS)])


def cells(wildcards: Sequence[Mapping[str, str]], room: int) -> str:
    """Wildcards of jobs, to be wrapped into LINES of ``room`` columns: one or two products of their values if that is
    possible, else the values of each wildcard. Values are named as long as there is room, else counted."""
    if not (names := list(wildcards[0])):
        return ""
    rows = list(dict.fromkeys(tuple(one[name] for name in names) for one in wildcards))
    products = min((_products(rows, order) for order in _orders(len(names))), key=len)
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    for some in (LINES * room, room, 48, 32, 20, 0):  # room for the values of one wildcard
        texts = [[_values(name, product[i], some) for i, name in enumerate(names)] for product in products]
        listed = ", ".join(_values(name, column, some) for name, column in columns.items())
        text = "; ".join(map(" × ".join, texts)) if len(texts) < 3 else listed
        if len(_wrapped(text, room)) <= LINES:
            break
    return text


def lines(wildcards: Sequence[Mapping[str, str]], room: int) -> list[str]:
    """:func:`cells` in its lines."""
    return [line.replace(GLUE, " ") for line in _wrapped(cells(wildcards, room), room)]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _orders(count: int) -> list[list[int]]:
    """The wildcards in their order, each of them put first in turn."""
    return [[first, *(other for other in range(count) if other != first)] for first in range(count)]


Products = list[dict[int, tuple[str, ...]]]


def _products(rows: Iterable[tuple[str, ...]], order: Sequence[int]) -> Products:
    """Rows as products of values: those of the first wildcard that go with the same rest are put together."""
    if not order:
        return [{}]
    rests: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        rests.setdefault(row[order[0]], []).append(row)
    alike: dict[tuple[Any, ...], list[str]] = {}
    for value, group in rests.items():
        alike.setdefault(tuple(sorted(tuple(row[i] for i in order[1:]) for row in group)), []).append(value)
    return [
        {order[0]: tuple(values), **product}
        for values in alike.values()
        for product in _products(rests[values[0]], order[1:])
    ]


def _values(name: str, column: Iterable[str], room: int) -> str:
    """The values of a wildcard, each once; or their number where they need more room."""
    values = list(dict.fromkeys(column))
    if all(re.fullmatch(r"\d+", value) for value in values):
        label = {"steps": "T", "seed": "seeds" if len(values) > 1 else "seed"}.get(name, name)
        text, room = f"{label}{GLUE}{numbers(sorted(map(int, values)))}", max(room, 12)
    else:
        text = " ".join(values)
    return text if len(text) <= room or len(values) == 1 else f"{len(values)} {PLURALS.get(name, f'{name}s')}"


def numbers(values: Sequence[int]) -> str:
    """1–3 for 1 2 3: ascending whole numbers in print."""
    run = len(values) > 2 and values[-1] - values[0] == len(values) - 1
    return f"{values[0]}–{values[-1]}" if run else " ".join(map(str, values))


def why(
    reason: Any,
    temporary: Collection[str] = (),
    words: Callable[[Sequence[Difference]], str] = lambda changed: ", ".join(one.key for one in changed),
) -> str:
    """Snakemake's reason for a job (``snakemake.jobs.Reason``) in a few words; empty if only its input is made anew.

    ``temporary`` are outputs that no job but those of one run needs; ``words`` says which params have changed.
    """
    if reason.forced:
        return "forced"
    if reason.missing_output:
        return "temporary, needed now" if {*reason.missing_output} <= {*temporary} else "missing output"
    newer = sorted(reason.updated_input - reason.updated_input_run)
    said = {
        "incomplete output": reason.incomplete_output,
        words(changed_params(reason.params_changed)) or "params changed": reason.params_changed,
        "command changed": reason.code_changed,
        "environment changed": reason.software_stack_changed,
        "other input files": reason.input_changed and not reason.params_changed,
        f"newer input: {files(newer)}": newer,
    }
    return ", ".join(text for text, holds in said.items() if holds)


def files(names: Iterable[str], most: int = 2, noun: str = "files") -> str:
    """The first of many files, and how many they are; or of other things of a name.

    Without Snakemake's mark of outputs that it does not delete before their job: a new one has it, too.
    """
    names = [str(name).removesuffix(" (update)") for name in names]
    return ", ".join(names[:most]) + (f" … ({len(names)} {noun})" if len(names) > most else "")


def changed_params(change: Any) -> list[Difference]:
    """What differs between the params of the last run and of this one, by key, such as ``selector.ratios``.

    ``change`` is a ``snakemake.persistence.ParamsChange``. Params that are no JSON mappings are not looked into.
    """
    before, now = (list(filter(None, map(_mapping, side))) for side in (change.only_old, change.only_new))
    found = [one for old, new in zip(before, now, strict=False) for one in differences(old, new)]
    return sorted(found, key=lambda one: one.key)


def _mapping(text: str) -> dict[str, Any] | None:
    """What a param that Snakemake keeps as the repr of a JSON text says."""
    try:
        value = json.loads(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError):
        return None
    return value if isinstance(value, dict) else None
