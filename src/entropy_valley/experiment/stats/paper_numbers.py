"""The numbers that the paper prints, transcribed once in ``paper/numbers.csv``.

A row of the transcription is a number: where it stands (a label of the paper, or the section of a sentence), what it
is of (backbone, direction, setting, system: names of the config where it has one; ``ev-ratio`` is a difference), the
metric, and the value with its sign, unit and relation as printed. ``what`` says in words what the other columns do not.
The last six columns say where our number is, see :mod:`.our_numbers`; without a ``table``, ``where`` says why there
is none. A number with the metric ``x_std`` is the
deviation over runs of the one with the metric ``x`` beside it.
"""

import csv
import functools
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

TRANSCRIPTION = Path(__file__).with_name("paper") / "numbers.csv"
STD = "_std"


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
    def signed(self) -> bool:
        """Whether it is printed with its sign: a difference, a limit of one, a correlation."""
        return self.digits[0] in "+-"

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
    # They are shown beside their means, never as rows of their own.
    deviations = {std.key for number in numbers().values() if (std := deviation(number))}
    return [number for key, number in numbers().items() if key not in deviations]


def tables() -> list[str]:
    """The tables of ours that have some of the paper's numbers."""
    # In the order of the paper, each once.
    return list(dict.fromkeys(number.table for number in numbers().values() if number.table))
