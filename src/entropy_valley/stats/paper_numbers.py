"""The numbers that the paper prints, transcribed once in ``paper/numbers.csv``.

A row of the transcription is a number: where it stands (a label of the paper, or the section of a sentence), what it
is of (backbone, direction, setting, system: names of the config where it has one; ``ev-ratio`` is a difference), the
metric, and the value with its sign, unit and relation as printed. ``what`` says in words what the other columns do not.
The last six columns say where our number is, see :mod:`.our_numbers`. A number with the metric ``x_std`` is the
deviation over runs of the one with the metric ``x`` beside it.
"""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path

from entropy_valley.errors import InputError

TRANSCRIPTION = Path(__file__).with_name("paper") / "numbers.csv"
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
    table: str = ""
    column: str = ""
    where: str = ""
    how: str = ""
    less: str = ""
    over: str = ""

    @functools.cached_property
    def _parts(self) -> re.Match[str]:
        if parts := _PRINTED.fullmatch(self.text):
            return parts
        raise InputError(TRANSCRIPTION, f"{self.text!r} is not a number", "Write it as the others.")

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
    def pair(self) -> tuple[str, str]:
        """The two systems of a difference, ``ev-ratio``; the second is "" for a single one."""
        first, _, second = self.system.partition("-")
        return first, second

    @property
    def key(self) -> tuple[str, ...]:
        """What no two numbers share."""
        return (self.label, self.backbone, self.direction, self.setting, self.system, self.metric)


@functools.cache
def numbers() -> dict[tuple[str, ...], Published]:
    """All numbers by :attr:`Published.key`, in the order of the paper."""
    with open(TRANSCRIPTION, newline="", encoding="utf-8") as file:
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
    deviations = {std.key for number in numbers().values() if (std := deviation(number))}
    return [number for key, number in numbers().items() if key not in deviations]


def tables() -> list[str]:
    """The tables of ours that have some of the paper's numbers."""
    return list(dict.fromkeys(number.table for number in numbers().values() if number.table))
