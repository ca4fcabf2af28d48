"""The length methods. A new one is a class and its line here, or a user's own ``module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entropy_valley import plugins
from entropy_valley.lengths.base import Choice, LengthMethod, Sentence
from entropy_valley.lengths.baselines import (
    CalibratedConfidence,
    Daedal,
    EosProbe,
    ExpectedLength,
    LengthRegularisedStyle,
    LikeliestLengths,
    Neighbours,
    Oracle,
    PartialUnmask,
    Ratio,
    SmartCropStyle,
)
from entropy_valley.lengths.ev import (
    AdaptiveEntropyValley,
    CalibratedEntropyValley,
    EntropyValley,
    LineEntropyValley,
    PriorEntropyValley,
    RerankedEntropyValley,
)
from entropy_valley.lengths.statistics import LengthStatistics

LENGTH_METHODS: dict[str, type] = {
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
    "length_line": ExpectedLength,
    "neighbours": Neighbours,
    "ev_rerank": RerankedEntropyValley,
    "length_head": LikeliestLengths,
    "daedal": Daedal,
    "eos_probe": EosProbe,
    "partial_unmask": PartialUnmask,
}

__all__ = ["LENGTH_METHODS", "Choice", "LengthMethod", "Sentence", "find_method", "make_method"]


def make_method(name: str, settings: Mapping[str, Any], statistics: LengthStatistics | None = None) -> LengthMethod:
    """A length method from its settings for one direction. If they have the key ``method``, it names the class.

    ``statistics`` are passed on if the class uses them. Without them such a method can be made, but not used. Raises
    InputError if the name is unknown or the class refuses the settings.
    """
    keywords = {key: value for key, value in settings.items() if key != "method"}
    if getattr(find_method(name, settings), "uses_statistics", False):
        keywords["statistics"] = statistics
    parts = ("sees_reference", "propose", "choose")
    return plugins.make("length method", LENGTH_METHODS, settings.get("method", name), keywords, parts)


def find_method(name: str, settings: Mapping[str, Any]) -> type:
    """The class of a length method; raises InputError where its name is unknown."""
    return plugins.find("length method", LENGTH_METHODS, settings.get("method", name))
