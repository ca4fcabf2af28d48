"""Where our tables have a number that the paper prints: ``paper/places.csv``.

A row is a place for some numbers of the paper. ``label`` and ``metric`` (several, with spaces between them), ``system``
and ``setting`` (empty: all) say for which. The first row that fits counts. ``table`` is a CSV file of ours,
``where`` conditions on its rows, ``ours`` and ``spread`` expressions (:mod:`analysis.expressions`). An expression with
a number for each run stands for their mean and sample deviation. ``order`` is yes where systems can be put in an order.

In conditions and expressions, ``$direction``, ``$backbone``, ``$system``, ``$setting`` and ``$metric`` are those of the
number, ``$first`` and ``$second`` the parts of ``ev-ratio``, ``$method`` and ``$T`` those of ``ratio@37`` or the T of
the setting ``T=64``, ``$testset`` and ``$pool`` the words of the setting ``flores-devtest 50k``, ``$seed`` our seed for
the setting ``run A``, and ``$main`` is our main metric. Test sets, pools and backbones have the names that the paper's
config gives them.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import NamedTuple

from entropy_valley.analysis.expressions import ExpressionError, NoRowsError, conditions, evaluate, single
from entropy_valley.analysis.published import FOLDER, Published
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd

NONE = float("nan")


@dataclass(frozen=True)
class Place:
    """A row of the file."""

    label: str
    metric: str
    system: str
    setting: str
    table: str
    where: str
    ours: str
    spread: str
    order: str

    def fits(self, number: Published) -> bool:
        """Whether it is a place for this number."""
        listed = number.label in self.label.split() and number.metric in self.metric.split()
        return listed and self.system in ("", number.system) and self.setting in ("", number.setting)


class Ours(NamedTuple):
    """A number of ours, as the tables have it (shares, not per cent), and its deviation over runs, NaN if unknown."""

    value: float
    std: float


@dataclass(frozen=True)
class Setting:
    """The config whose results are compared: its names for those of the paper's config, main metric, T and seeds."""

    names: Mapping[str, str]
    metric: str
    steps: int
    seeds: Sequence[int]

    def variables(self, number: Published) -> dict[str, str]:
        """The values of the ``$`` names for a number."""
        first, _, second = number.system.partition("-")
        method, _, other_steps = number.system.partition("@")
        steps = other_steps or (number.setting[2:] if number.setting.startswith("T=") else str(self.steps))
        testset, _, pool = number.setting.partition(" ")
        run = re.fullmatch("run ([A-Z])", number.setting)
        place = ord(run[1]) - ord("A") if run else 0
        return {
            **{name: getattr(number, name) for name in ("direction", "backbone", "system", "setting", "metric")},
            **{"testset": testset, "pool": pool, "first": first, "second": second, "method": method},
            **{"T": steps, "main": self.metric},
            "seed": str(self.seeds[place]) if place < len(self.seeds) else "none",
        }

    def text(self, template: str, number: Published) -> str:
        """Conditions or an expression for a number, with this config's names."""
        filled = Template(template).substitute(self.variables(number))
        return re.sub(r"(?<==)[^\s}]+", lambda name: self.names.get(name[0], name[0]), filled)


@functools.cache
def places() -> list[Place]:
    """The rows of the file, in its order."""
    with open(FOLDER / "places.csv", newline="", encoding="utf-8") as file:
        return [Place(**row) for row in csv.DictReader(file)]


def place_of(number: Published) -> Place | None:
    """Where ours is; None if no table of ours has it."""
    return next((place for place in places() if place.fits(number)), None)


def ours(number: Published, place: Place, rows: pd.DataFrame, setting: Setting) -> Ours | None:
    """Our number in the rows of its table (texts, as in the file); None where these lack it: it was not run.

    Raises :class:`InputError` for a place that does not fit its table.
    """
    where = conditions(setting.text(place.where, number))

    def number_of(expression: str) -> Ours:
        found = evaluate(setting.text(expression, number), rows, where)
        several = isinstance(found, pd.Series) and len(found) > 1
        return Ours(float(found.mean()), float(found.std())) if several else Ours(single(found), NONE)

    try:
        found = number_of(place.ours)
    except NoRowsError:
        return None
    except ExpressionError as error:
        problem = f"{place.table}.csv for {number.label} {number.metric}: {error}"
        raise InputError(FOLDER / "places.csv", problem, "Correct its place.") from None
    try:
        return found._replace(std=number_of(place.spread).value) if place.spread else found
    except NoRowsError:  # a single run has none
        return found
