"""The numbers that the paper prints, transcribed once in ``paper/numbers.csv``.

A row of the transcription is a number: where it stands (a label of the paper, or the section of a sentence), what it
is of (backbone, direction, setting, system: names of the config where it has one; ``ev-ratio`` is a difference), the
metric, and the value with its sign, unit and relation as printed. ``what`` says in words what the other columns do not.
A number with the metric ``x_std`` is the deviation over runs of the one with the metric ``x`` beside it.

The last six columns say where our number is. ``table`` is the table; without one, ``where`` says why there is none.
``column`` is a column or an expression of columns, and ``where`` the rows, as in ``method=ev;steps=32|64``: conditions
in the paper's names, and the values that each allows. ``how`` says what several rows are: without it the runs, whose
mean and deviation count; ``one run`` is a run that is judged by the deviation over all; else a function of all rows.
``less`` are rows whose largest value is subtracted, ``over`` those whose lead over these divides the difference. The
table ``config`` is the config: its ``column`` is a path of keys, see :func:`.paper_comparison.config_of`.
"""

import csv
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from entropy_valley import files

TRANSCRIPTION = Path(__file__).with_name("paper") / "numbers.csv"
# How names in its columns are printed, where not with blanks in the place of underscores.
NAMES = TRANSCRIPTION.with_name("names.csv")
WORDS = {(column, name): words for column, name, words in csv.reader(files.read_lines(NAMES))}
STD = "_std"
NONE = float("nan")
CONFIG = "config"  # the table of the numbers that are settings


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
    table: str = ""
    column: str = ""
    where: str = ""
    how: str = ""
    less: str = ""
    over: str = ""

    @functools.cached_property
    def digits(self) -> str:
        """The number alone, as in ``+22.1`` and ``6.9e-45``."""
        return self.text.lstrip("<≤≈").removesuffix("%").removesuffix(" pp")

    @property
    def relation(self) -> str:
        """``<``, ``≤`` or ``≈`` before it, or nothing."""
        # Such as "≤15.6%": a bound, no value.
        return self.text.partition(self.digits)[0]

    @property
    def unit(self) -> str:
        """What stands behind it: ``%``, `` pp`` or nothing."""
        return self.text.partition(self.digits)[2]

    @property
    def scale(self) -> int:
        """What a share is multiplied by to be printed so."""
        return 100 if self.unit else 1

    @property
    def value(self) -> float:
        """In the unit in which it is printed."""
        return float(self.digits)

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit: what the printed value may be away from the unrounded one."""
        # Of "6.9e-45" the last digit counts 1e-46.
        return float(Decimal(5).scaleb(int(Decimal(self.digits).as_tuple().exponent) - 1))

    @property
    def style(self) -> str:
        """How Python formats it: ``.4f``, or ``.1e`` in scientific notation."""
        digits, exponent, _ = self.digits.partition("e")
        return f".{len(digits.partition('.')[2])}{exponent or 'f'}"

    @property
    def key(self) -> tuple[str, ...]:
        """What no two numbers share."""
        return (self.label, self.backbone, self.direction, self.setting, self.system, self.metric)


@functools.cache
def numbers() -> dict[tuple[str, ...], Published]:
    """All numbers by :attr:`Published.key`, in the order of the paper."""
    rows = [Published(*row.values()) for row in csv.DictReader(files.read_lines(TRANSCRIPTION))]
    return {number.key: number for number in rows}


def find(label: str, metric: str, **named: str) -> Published | None:
    """The number of a place; what is not ``named`` is empty, but for the backbone, LLaDA-8B."""
    where = {"backbone": "llada-8b", "direction": "", "setting": "", "system": "", **named}
    return numbers().get((label, *where.values(), metric))


def deviation(number: Published) -> Published | None:
    """The deviation over runs that is printed with a number, if there is one."""
    return numbers().get((*number.key[:-1], number.metric + STD))


def means() -> list[Published]:
    """All numbers but the deviations of others."""
    # They are shown beside their means, never as rows of their own.
    return [number for number in numbers().values() if not number.metric.endswith(STD)]


def tables() -> list[str]:
    """The tables of ours that have some of the paper's numbers."""
    # In the order of the paper, each once.
    return list(dict.fromkeys(number.table for number in numbers().values() if number.table))


# --- Our number beside one of the paper's, from the CSV file of a table of ours.


class Ours(NamedTuple):
    """A number of ours, as the tables have it (shares, not per cent), and its deviation over runs, NaN if unknown.

    ``spread``: of a number of one run the deviation over all runs, by which it is judged; it is not the number's own.
    """

    value: float
    std: float = NONE
    spread: float = NONE


@dataclass(frozen=True)
class OurTables:
    """The CSV files of a config by their names, with texts as values; and its names for those of the paper's config.

    Beside names of the config, ``comet`` stands for the main metric, ``T`` for the steps of the tables, and ``run A``,
    ``run B`` … for the seeds of the main backbone.
    """

    frames: Mapping[str, pd.DataFrame]
    names: Mapping[str, str]

    def ours(self, number: Published) -> Ours | None:
        """Our number; None where the config did not run it."""
        if number.table not in self.frames:
            return None
        values = self.values(number, number.where)
        if values.empty:
            return None
        if number.less:
            # The best of several systems is the paper's own rule, as for the ratios of its sweep.
            less = self.values(number, number.less).max()
            ours = Ours(values.max() - less)
            if number.over:
                ours = Ours(ours.value / (self.values(number, number.over).max() - less))
        elif number.how == "one run":
            # A deviation of one run is not defined: it is judged by that of all.
            all_runs = self.values(number, re.sub(";seed=[^;]*", "", number.where))
            ours = Ours(values.mean(), spread=all_runs.std())
        elif number.how:
            ours = Ours(values.agg(number.how))
        else:
            ours = Ours(values.mean(), self._deviation(number, values))
        return None if pd.isna(ours.value) else ours

    def values(self, number: Published, where: str) -> pd.Series:
        """What ``column`` says of each row that meets the conditions, of several expressions one after another; nothing
        unless each allowed value is there."""
        rows = self.frames[number.table]
        for condition in where.split(";"):
            key, _, allowed = condition.partition("=")
            # A config may call the same thing by another name.
            values = {self.names.get(value, value) for value in allowed.split("|")}
            rows = rows[rows[key].isin(values)]
            # The best, or the number, of some systems is not that of all.
            if values - {*rows[key]}:
                return pd.Series(dtype=float)
        # Tables are read as texts, so that seeds and budgets compare with the conditions.
        numeric = rows.apply(pd.to_numeric, errors="coerce").rename(columns={self.names.get("comet", "comet"): "comet"})
        return pd.concat([numeric.eval(expression) for expression in number.column.split(", ")])

    def _deviation(self, number: Published, values: pd.Series) -> float:
        """The deviation over runs: in a table of its own place, in a column beside the mean, or that of the values."""
        # The paper may print a deviation elsewhere than its mean.
        printed = deviation(number)
        if printed and printed.table:
            return self.values(printed, printed.where).mean()
        column = re.sub(r"mean\b", "std", number.column)
        if column != number.column and column.rpartition(" ")[2] in self.frames[number.table]:
            return self.values(replace(number, column=column), number.where).mean()
        return values.std()
