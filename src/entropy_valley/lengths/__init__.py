"""The length methods. A new one is a class and its line here, or a user's own ``module:Class``."""

from entropy_valley.lengths import baselines, ev
from entropy_valley.lengths.base import (
    LENGTH_METHODS,
    Choice,
    LengthMethod,
    Sentence,
    candidate_length,
    find_method,
    make_method,
)

LENGTH_METHODS |= {
    kind.model_fields["method"].default: kind
    for kind in (
        baselines.Oracle,
        baselines.OracleOnGrid,
        baselines.OracleOnLine,
        baselines.Ratio,
        baselines.FixedLength,
        ev.EntropyValley,
        ev.AdaptiveEntropyValley,
        baselines.SmartCropStyle,
        baselines.LengthRegularisedStyle,
        baselines.CalibratedConfidence,
        ev.LineEntropyValley,
        ev.FittedEntropyValley,
        ev.WeighedEntropyValley,
        baselines.ExpectedLength,
        baselines.Neighbours,
        baselines.LikeliestLengths,
        baselines.Daedal,
        baselines.EosProbe,
        baselines.PartialUnmask,
    )
}

__all__ = ["LENGTH_METHODS", "Choice", "LengthMethod", "Sentence", "candidate_length", "find_method", "make_method"]
