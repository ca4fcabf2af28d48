"""How long translations are for their sources, in the tokens of a backbone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from entropy_valley.backbone.prompt import PLACE, Prompt
from entropy_valley.errors import InputError
from entropy_valley.late import numpy as np

PERCENTILES = (10, 30, 50, 70, 90)  # five ratios for the grid of EV: the ends, the middle and two between


def length_ratios(pairs: Iterable[Mapping[str, str]], tokenizer: Any) -> dict[str, float]:
    """The :func:`moments` of |y|/|x| over pairs ``{source, target}``, in tokens without special ones.

    Raises InputError where no source has a token.
    """
    tokens = Prompt(PLACE, tokenizer).tokens
    counts = ((len(tokens(pair["source"])), len(tokens(pair["target"]))) for pair in pairs)
    return moments([target / source for source, target in counts if source])


def moments(ratios: Sequence[float]) -> dict[str, float]:
    """Median, mean and number of ratios, and their :data:`PERCENTILES`: ``p10`` and so on."""
    if not ratios:
        raise InputError("length ratios", "no training pair has a source", "Give a corpus of sentence pairs.")
    found = {"median": statistics.median(ratios), "mean": math.fsum(ratios) / len(ratios), "pairs": len(ratios)}
    values = np.percentile(ratios, PERCENTILES).tolist()
    return found | {f"p{percent}": value for percent, value in zip(PERCENTILES, values, strict=True)}
