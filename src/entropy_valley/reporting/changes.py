"""Params and keys of a config that differ, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entropy_valley.differences import ABSENT, Difference
from entropy_valley.experiment import Experiment
from entropy_valley.files import canonical
from entropy_valley.reporting.labels import method

LONGEST = 70  # characters of a value


def said(experiment: Experiment, rule: str, wildcards: Mapping[str, str], change: Difference) -> str:
    """``EV ratios of en-zh: 0.7 0.8 → 0.6 0.8``: a param that differs."""
    if change.key == "cells":
        return _cells(change.before, change.after)
    name, direction = change.key, wildcards.get("direction", "")
    if change.key.startswith("selector."):
        key = change.key.removeprefix("selector.")
        block = getattr(experiment.length_methods, wildcards["method"])
        of = f" of {direction}" if isinstance(getattr(block, key.split(".")[0], None), Mapping) else ""
        name = f"{method(wildcards['method']).short} {key}{of}"
    elif change.key == "prompt":
        name = f"prompt of {direction}"
    elif change.key == "revision":
        name = f"revision of the code of {rule}"
    return f"{name}: {shown(change.before)} → {shown(change.after)}"


def shown(value: Any) -> str:
    """A value in print; numbers of a list side by side."""
    if value is ABSENT:
        return "not set"
    plain = isinstance(value, list) and value and not any(isinstance(one, list | dict) for one in value)
    text = " ".join(map(str, value)) if plain else value if isinstance(value, str) else canonical(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _cells(before: list[str], after: list[str]) -> str:
    """How many cells a table has more or fewer."""
    more, fewer = len({*after} - {*before}), len({*before} - {*after})
    parts = [f"{counted(more, 'cell')} more"] * bool(more) + [f"{counted(fewer, 'cell')} fewer"] * bool(fewer)
    return ", ".join(parts) or "cells in another order"


def counted(count: int, noun: str) -> str:
    """``3 cells``."""
    return f"{count} {noun}{'s' * (count != 1)}"
