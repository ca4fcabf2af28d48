"""Expressions that take numbers from the rows of a CSV file: of docs/check_numbers.py and of paper/places.csv.

``column{key=value …}`` is a column in the rows that meet the conditions, a number for each run. Beside arithmetic there
are mean, std (sample), min, max, sum and count over runs, and floor and ceil.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

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
