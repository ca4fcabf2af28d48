"""What is computed once of a config: thousands of rules and cells ask for the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar
from weakref import finalize

from entropy_valley.experiment.schema import Experiment

T = TypeVar("T")
_known: dict[int, dict[Hashable, object]] = {}  # by the config's identity: its model cannot be hashed


def remembered(experiment: Experiment, key: Hashable, compute: Callable[[], T]) -> T:
    """What ``compute`` returns, computed at the first call with this config and key."""
    if id(experiment) not in _known:
        finalize(experiment, _known.pop, id(experiment), None)
    known = _known.setdefault(id(experiment), {})
    if key not in known:
        known[key] = compute()
    return known[key]
