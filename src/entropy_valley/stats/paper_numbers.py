"""The paper's numbers, transcribed once, and expressions over the rows of our CSV files."""

from __future__ import annotations

import ast
import csv
import functools
import math
import operator
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley.errors import InputError

# --- The numbers that the paper prints, transcribed once: ``paper/numbers.csv``.
#
# A row is a number: where it stands (a label of the paper, or the section of a sentence), of what it is (backbone,
# direction, setting, system: names of the config where it has one; ``ev-ratio`` is a difference), the metric, and the
# value with its sign, unit and relation as printed. ``what`` says in words what the other columns do not. A number
# with the metric ``x_std`` is the deviation over runs of the one with the metric ``x`` beside it.


FOLDER = Path(__file__).with_name("paper")
STD = "_std"
_PRINTED = re.compile(r"([<≤≈]?)([+-]?\d+(?:\.(\d+))?(?:e([+-]?\d+))?)( pp|%)?")


@dataclass(frozen=True)
class Published:
    """A number of the paper; the fields are the columns of the file, :attr:`text` its value as printed."""

    label: str
    backbone: str
    direction: str
    setting: str
    system: str
    metric: str
    text: str
    what: str = ""

    @functools.cached_property
    def _parts(self) -> re.Match[str]:
        if parts := _PRINTED.fullmatch(self.text):
            return parts
        raise InputError(FOLDER / "numbers.csv", f"{self.text!r} is no number", "Write it as the others.")

    @property
    def relation(self) -> str:
        """``<``, ``≤`` or ``≈`` before it, or nothing."""
        return self._parts[1]

    @property
    def unit(self) -> str:
        """What stands behind it: ``%``, `` pp`` or nothing."""
        return self._parts[5] or ""

    @property
    def scale(self) -> int:
        """What a share is multiplied by to be printed so."""
        return 100 if self.unit else 1

    @property
    def decimals(self) -> int:
        return len(self._parts[3] or "")

    @property
    def exponent(self) -> int | None:
        """Of a number in the notation ``6.9e-45``."""
        return int(self._parts[4]) if self._parts[4] else None

    @property
    def value(self) -> float:
        """In the unit in which it is printed."""
        return float(self._parts[2])

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit: what the printed value may be away from the unrounded one."""
        return 0.5 * 10.0 ** ((self.exponent or 0) - self.decimals)

    @property
    def signed(self) -> bool:
        """Whether it is printed with its sign: a difference, a limit of one, a correlation."""
        return self._parts[2][0] in "+-"

    @property
    def key(self) -> tuple[str, ...]:
        """What no two numbers share."""
        return (self.label, self.backbone, self.direction, self.setting, self.system, self.metric)


@functools.cache
def numbers() -> dict[tuple[str, ...], Published]:
    """All numbers by :attr:`Published.key`, in the order of the paper."""
    with open(FOLDER / "numbers.csv", newline="", encoding="utf-8") as file:
        rows = [Published(*row.values()) for row in csv.DictReader(file)]
    return {number.key: number for number in rows}


def find(label: str, metric: str, **named: str) -> Published | None:
    """The number of a place; what is not ``named`` is empty, but for the backbone, LLaDA-8B."""
    where = {"backbone": "llada-8b", "direction": "", "setting": "", "system": "", **named}
    return numbers().get((label, *(where[key] for key in ("backbone", "direction", "setting", "system")), metric))


def deviation(number: Published) -> Published | None:
    """The deviation over runs that is printed with a number, if there is one."""
    return numbers().get((*number.key[:-1], number.metric + STD))


def means() -> list[Published]:
    """All numbers but the deviations of others."""
    deviations = {found.key for number in numbers().values() if (found := deviation(number))}
    return [number for key, number in numbers().items() if key not in deviations]


# --- Expressions that take numbers from the rows of a CSV file: of docs/check_numbers.py and of paper/places.csv.
#
# ``column{key=value …}`` is a column in the rows that meet the conditions, a number for each run. Beside arithmetic
# there are mean, std (sample), min, max, sum and count over runs, and floor and ceil.

TERM = re.compile(r"(\w+)\{([^{}]*)\}")  # column{key=value key=value}
RUN = ("backbone", "direction", "testset", "seed")
OF_RUNS: dict[str, Callable[[pd.Series], float]] = {
    **{name: operator.methodcaller(name) for name in ("mean", "std", "min", "max", "sum")},
    "count": lambda rows: rows.sum() if rows.dtype == bool else len(rows),
}
OF_NUMBERS: dict[str, Callable[[float], float]] = {"floor": math.floor, "ceil": math.ceil}
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.USub: operator.neg,
}


class ExpressionError(Exception):
    """An expression that is none, or does not fit its file."""


class NoRowsError(ExpressionError):
    """No row meets the conditions of an expression, or the number is not there."""


def evaluate(expression: str, rows: pd.DataFrame, where: Mapping[str, str]) -> Any:
    """The value of an expression: a number, or a number for each run. ``rows`` are texts."""
    terms: list[pd.Series] = []

    def name(term: re.Match[str]) -> str:
        terms.append(_column(rows, term[1], {**where, **conditions(term[2])}))
        return f"t{len(terms) - 1}"

    try:
        tree = ast.parse(TERM.sub(name, expression), mode="eval").body
    except SyntaxError:
        raise ExpressionError(f"{expression!r} is no expression") from None
    return _value(tree, terms)


def _column(rows: pd.DataFrame, column: str, where: Mapping[str, str]) -> pd.Series:
    """A column in the rows that meet the conditions, by run."""
    if unknown := {column, *where} - set(rows):
        raise ExpressionError(f"no column {', '.join(sorted(unknown))}")
    for key, value in where.items():
        rows = rows[rows[key] == value]
    keys = [key for key in RUN if key in rows]
    if rows.empty:
        raise NoRowsError(f"0 rows with {where}")
    if rows.duplicated(keys).any():
        raise ExpressionError(f"{len(rows)} rows with {where}, more than one a run")
    return pd.to_numeric(rows.set_index(keys)[column], errors="raise")


def _value(node: ast.AST, terms: Sequence[pd.Series]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name) if re.fullmatch(r"t\d+", name):
            return terms[int(name[1:])]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](*_aligned(_value(left, terms), _value(right, terms)))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
            return OPERATORS[type(op)](*_aligned(_value(left, terms), _value(right, terms)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, terms)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in OF_NUMBERS:
            return OF_NUMBERS[name](single(_value(argument, terms)))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in OF_RUNS:
            if isinstance(rows := _value(argument, terms), pd.Series):
                return OF_RUNS[name](rows)
    raise ExpressionError(f"{ast.unparse(node)!r} is no expression that is known here")


def _aligned(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values, run by run if both have runs."""
    if isinstance(left, pd.Series) and isinstance(right, pd.Series):
        if not left.index.sort_values().equals(right.index.sort_values()):
            raise ExpressionError("two columns of different runs")
        return left, right.reindex(left.index)
    return left, right


def single(value: Any) -> float:
    """A value that must be one number."""
    if isinstance(value, pd.Series):
        if len(value) != 1:
            raise ExpressionError(f"{len(value)} rows; say which, or take their mean")
        value = value.iloc[0]
    if not math.isfinite(value):
        raise NoRowsError("no number there")
    return float(value)


def conditions(text: str) -> dict[str, str]:
    """``key=value key='two words'`` as a mapping."""
    words = [word.partition("=") for word in shlex.split(text)]
    if wrong := [key for key, equals, _ in words if not equals]:
        raise ExpressionError(f"{wrong[0]!r} is no condition; give key=value")
    return {key: value for key, _, value in words}
