"""Params and keys of a config that differ, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from entropy_valley.differences import ABSENT, Difference, between
from entropy_valley.experiment import Experiment, plan
from entropy_valley.files import canonical
from entropy_valley.plugins import without_code
from entropy_valley.reporting.labels import method

LONGEST = 70  # characters of a value


def said(
    experiment: Experiment, rule: str, wildcards: Mapping[str, str], change: Difference, methods: Sequence[str] = ()
) -> str:
    """``EV ratios of en-zh: 0.7 0.8 → 0.6 0.8``: a param that differs, and whose it is, of these length methods."""
    if edited := _edited(change.before, change.after):
        return edited
    name = _name(experiment, rule, wildcards, change.key)
    if change.key.startswith("selector.") and methods:
        name = f"{plan.files([method(one).short for one in methods], 2, 'methods')} {name}"
    if isinstance(change.before, list) and isinstance(change.after, list) and (rows := _rows(name, change)):
        return rows
    return f"{name}: {between(shown(change.before), shown(change.after), LONGEST)}"


def reasons(
    experiment: Experiment, rule: str, wildcards: Mapping[str, str], changes: Iterable[Difference], most: int
) -> str:
    """The first of the params that differ, each reason once, without the names of methods: cells stand beside it."""
    texts = list(dict.fromkeys(said(experiment, rule, wildcards, one) for one in changes))
    return "; ".join([*texts[:most], *[f"… ({len(texts)} params)"] * (len(texts) > most)])


def _name(experiment: Experiment, rule: str, wildcards: Mapping[str, str], key: str) -> str:
    """What a param is called by people."""
    direction = wildcards.get("direction", "")
    first, _, rest = key.partition(".")
    if first == "selector":
        block = getattr(experiment.length_methods, wildcards.get("method", ""), None)
        return f"{rest} of {direction}" if isinstance(getattr(block, rest.split(".")[0], None), Mapping) else rest
    if first == "grids" and rest:  # of a table: by direction, and by method where these differ
        return f"ratios of {rest.split('.')[0]}"
    return {"prompt": f"prompt of {direction}", "revision": f"revision of the code of {rule}"}.get(key, key)


def _edited(before: Any, after: Any) -> str:
    """``lengths.py changed``, where a class of the user's own is the same but for its code."""
    names = [one if isinstance(one, str) else "" for one in (before, after)]
    module, _, of = without_code(names[1]).partition(":")
    if not of or "@" not in names[1] or without_code(names[0]) != without_code(names[1]):
        return ""
    return f"{module.replace('.', '/')}.py changed"


def shown(value: Any) -> str:
    """A value in print; numbers of a list side by side."""
    if value is ABSENT:
        return "not set"
    plain = isinstance(value, list) and value and not any(isinstance(one, list | dict) for one in value)
    text = " ".join(map(str, value)) if plain else value if isinstance(value, str) else canonical(value)
    return text.replace("\n", "\\n")


def _rows(name: str, change: Difference) -> str:
    """How many cells a table has more or fewer; or other things of a list that is too long to be printed."""
    before, after = ({*map(canonical, side)} for side in (change.before, change.after))
    more, fewer = len(after - before), len(before - after)
    if name == "cells":
        parts = [f"{counted(more, 'cell')} more"] * bool(more) + [f"{counted(fewer, 'cell')} fewer"] * bool(fewer)
        return ", ".join(parts) or "cells in another order"
    long = max(len(shown(side)) for side in (change.before, change.after)) > LONGEST
    return f"{name}: {more or fewer} {'more' if more else 'fewer'}" if long and bool(more) != bool(fewer) else ""


def counted(count: int, noun: str) -> str:
    """``3 cells``."""
    return f"{count} {noun}{'s' * (count != 1)}"
