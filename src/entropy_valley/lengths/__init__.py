"""The length methods. A new one is a class and its line here, or a user's own ``module:Class``."""

from __future__ import annotations

from entropy_valley.lengths.base import LENGTH_METHODS, Choice, LengthMethod, Sentence, find_method, make_method
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

LENGTH_METHODS |= {
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
