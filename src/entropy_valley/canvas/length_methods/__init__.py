"""The length selectors; a new one is one file and one line here, or a user's own ``module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entropy_valley import plugins
from entropy_valley.canvas.length_methods.adaptive_ev import AdaptiveEntropyValley
from entropy_valley.canvas.length_methods.base import Choice, Selector, Sentence, Unprobed
from entropy_valley.canvas.length_methods.cal import CalibratedConfidence
from entropy_valley.canvas.length_methods.daedal import Daedal
from entropy_valley.canvas.length_methods.ev import EntropyValley
from entropy_valley.canvas.length_methods.ev_calibrated import CalibratedEntropyValley
from entropy_valley.canvas.length_methods.ev_line import LineEntropyValley
from entropy_valley.canvas.length_methods.ev_prior import PriorEntropyValley
from entropy_valley.canvas.length_methods.ev_rerank import RerankedEntropyValley
from entropy_valley.canvas.length_methods.length_head import LengthHead
from entropy_valley.canvas.length_methods.length_line import LengthLine
from entropy_valley.canvas.length_methods.lr_style import LengthRegularisedStyle
from entropy_valley.canvas.length_methods.neighbours import Neighbours
from entropy_valley.canvas.length_methods.oracle import Oracle
from entropy_valley.canvas.length_methods.ratio import Ratio
from entropy_valley.canvas.length_methods.smartcrop_style import SmartCropStyle
from entropy_valley.canvas.statistics import LengthStatistics

SELECTORS: dict[str, type] = {
    "oracle": Oracle,
    "ratio": Ratio,
    "ev": EntropyValley,
    "adaptive_ev": AdaptiveEntropyValley,
    "smartcrop_style": SmartCropStyle,
    "lr_style": LengthRegularisedStyle,
    "cal": CalibratedConfidence,
    "ev_calibrated": CalibratedEntropyValley,
    "ev_prior": PriorEntropyValley,
    "ev_line": LineEntropyValley,
    "length_line": LengthLine,
    "neighbours": Neighbours,
    "ev_rerank": RerankedEntropyValley,
    "length_head": LengthHead,
    "daedal": Daedal,
}

__all__ = [
    "SELECTORS",
    "Choice",
    "Selector",
    "Sentence",
    "loads_model",
    "make_selector",
    "uses_length_head",
    "uses_statistics",
]


def make_selector(method: str, settings: Mapping[str, Any], statistics: LengthStatistics | None = None) -> Selector:
    """A method's selector from its settings; their key ``selector``, if any, names a class other than the method's.

    ``statistics`` go to a class that uses them; without, it can be made and not asked.
    """
    keywords = {key: value for key, value in settings.items() if key != "selector"}
    if uses_statistics(method, settings):
        keywords["statistics"] = statistics
    return plugins.make("selector", SELECTORS, settings.get("selector", method), keywords)


def uses_statistics(method: str, settings: Mapping[str, Any]) -> bool:
    """Whether a method's selector needs the length statistics of its run."""
    return getattr(_class(method, settings), "uses_statistics", False)


def uses_length_head(method: str, settings: Mapping[str, Any]) -> bool:
    """Whether a method's selector needs what the length head of its run predicts."""
    return getattr(_class(method, settings), "uses_length_head", False)


def loads_model(method: str, settings: Mapping[str, Any]) -> bool:
    """Whether a method's canvases need a forward pass: none does whose selector inherits from ``Unprobed`` and uses no
    length head."""
    kind = _class(method, settings)
    unprobed = isinstance(kind, type) and issubclass(kind, Unprobed)
    return not unprobed or uses_length_head(method, settings)


def _class(method: str, settings: Mapping[str, Any]) -> Any:
    return plugins.find("selector", SELECTORS, settings.get("selector", method))
