"""What the losses of a training run came to, and the cross-entropy of guessing uniformly over the vocabulary."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import files
from entropy_valley.analysis.gap_closure import mean, sample_std
from entropy_valley.errors import InputError

LAST = 10  # optimiser steps at the end of a run that are averaged


@dataclass(frozen=True)
class LossSummary:
    """Nats: of the last step, over the last ``LAST`` steps, and the first lowest with its step."""

    final: float
    last_mean: float
    last_std: float
    minimum: float
    minimum_step: int


def summarise_losses(steps: Sequence[float], losses: Sequence[float]) -> LossSummary:
    """Summarise the losses of optimiser steps, both of shape (steps,), at least one; sample standard deviation."""
    lowest = min(range(len(losses)), key=losses.__getitem__)
    last = losses[-LAST:]
    return LossSummary(losses[-1], mean(last), sample_std(last), losses[lowest], int(steps[lowest]))


def uniform_cross_entropy(vocabulary: int) -> float:
    """log|V|, the mean cross-entropy in nats of giving every token the same probability: exact at every step.

    A loss weighted by 1/t has no such mark: its weights sum to 1 neither at a step nor in expectation. A slot is
    masked with probability t, but one of a sequence's n slots always is, so that a uniform guess loses
    log|V| · (1 + E[(1 - t)^n / (n t)]) in expectation.
    """
    return math.log(vocabulary)


def read_losses(path: Path, columns: Sequence[str]) -> dict[str, list[float]]:
    """The ``step`` and the other columns of a ``losses.csv``.

    Raises :class:`InputError` for a missing file or column, no steps, or what is no finite number.
    """
    names = ("step", *columns)
    table = csv.DictReader(files.read_lines(path))
    rows, absent = list(table), [name for name in names if name not in (table.fieldnames or ())]
    if absent or not rows:
        raise InputError(path, f"no {', '.join(absent) or 'steps'}", "Train the adapter again.")
    return {name: [_number(f"{path}:{line}", name, row[name]) for line, row in enumerate(rows, 2)] for name in names}


def _number(place: str, name: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(place, f"{name} is {text!r}, not a finite number", "Train the adapter again.")
    return value
