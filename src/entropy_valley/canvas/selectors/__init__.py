"""The length selectors; a new one is one file and one line here, or a user's own ``module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entropy_valley import plugins
from entropy_valley.canvas.selectors.base import Choice, Selector, Sentence
from entropy_valley.canvas.selectors.ev import EntropyValley
from entropy_valley.canvas.selectors.oracle import Oracle
from entropy_valley.canvas.selectors.ratio import Ratio

SELECTORS: dict[str, type] = {"oracle": Oracle, "ratio": Ratio, "ev": EntropyValley}

__all__ = ["SELECTORS", "Choice", "Selector", "Sentence", "make_selector"]


def make_selector(method: str, settings: Mapping[str, Any]) -> Selector:
    """A method's selector from its settings; their key ``selector``, if any, names a class other than the method's."""
    keywords = {key: value for key, value in settings.items() if key != "selector"}
    return plugins.make("selector", SELECTORS, settings.get("selector", method), keywords)
