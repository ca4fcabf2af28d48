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
