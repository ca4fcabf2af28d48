"""LR-style: confidence corrected for its trend in the length.

After LR-DLLM (cheng2026improvingvariablelengthgenerationdiffusion in the paper's bibliography), whose length
regularisation has no public code: the regression stands for it, and tables call it "LR-style".
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

from entropy_valley.canvas.length_methods.base import Choice, OnGrid, Sentence
from entropy_valley.engine.reading import Reading


class LengthRegularisedStyle(OnGrid):
    """Confidence corrected for its trend in the length.

    Largest s(L) = mean log max-p over all L slots + k · log L among EV's candidates; the shorter one on a tie.

    -k is the least-squares slope of mean log max-p on log L over the sentence's own probes, so that s compares how far
    each canvas lies above their line. A single candidate has no slope (k = 0); two lie on their line and are a tie.
    The canvas file has -s.
    """

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        logs = {length: math.log(length) for length in sorted(probes)}
        means = {length: math.fsum(probes[length].logprobs) / length for length in logs}
        slope = statistics.linear_regression(logs.values(), means.values()).slope if len(logs) > 1 else 0.0
        return Choice.lowest({length: round(slope * logs[length] - means[length], 6) for length in logs})
