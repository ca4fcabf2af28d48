"""The length methods. A new one is a class and its line here, or a user's own ``module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entropy_valley import plugins
from entropy_valley.lengths.base import Choice, LengthMethod, Sentence
from entropy_valley.lengths.baselines import EosProbe, ExpectedLength, LikeliestLengths, Neighbours, Oracle, Ratio
from entropy_valley.lengths.ev import (
    AdaptiveEntropyValley,
    CalibratedEntropyValley,
    EntropyValley,
    LineEntropyValley,
    PriorEntropyValley,
    RerankedEntropyValley,
)
from entropy_valley.lengths.published import (
    CalibratedConfidence,
    Daedal,
    LengthRegularisedStyle,
    PartialUnmask,
    SmartCropStyle,
)
from entropy_valley.lengths.statistics import LengthStatistics

LENGTH_METHODS: dict[str, type[LengthMethod]] = {
    kind.model_fields["method"].default: kind
    for kind in (
        Oracle,
        Ratio,
        EntropyValley,
        AdaptiveEntropyValley,
        SmartCropStyle,
        LengthRegularisedStyle,
        CalibratedConfidence,
        CalibratedEntropyValley,
        PriorEntropyValley,
        LineEntropyValley,
        ExpectedLength,
        Neighbours,
        RerankedEntropyValley,
        LikeliestLengths,
        Daedal,
        EosProbe,
        PartialUnmask,
    )
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
