"""DAEDAL's first stage: the canvas grows until the model expects the EOS at its end.

After "Beyond Fixed: Training-Free Variable-Length Denoising for Diffusion Large Language Models" (github.com/
Li-Jinsong/DAEDAL). Its second stage is a filling, :mod:`entropy_valley.decoding.variable_length.daedal`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from entropy_valley.canvas.length_methods.base import Choice, Sentence
from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.reading import Reading
from entropy_valley.errors import InputError


class Daedal:
    """Probe, add ``step`` slots while the EOS confidence is below ``expansion_threshold``, and take the last canvas.

    It starts with the canvas of Fixed Ratio (``ratios``: one ratio, the config's key narrowed to a direction) or with
    ``start`` slots, and ends in any case at ``cap`` slots or at those that the context leaves: a checkpoint of one EOS
    never fills a large ``eos_window``, and each of its canvases grows up to there. The canvas file has the confidences
    with a minus; the last length is chosen even where an earlier one had more.
    """

    sees_reference = False

    def __init__(
        self,
        ratios: float | None = None,
        start: int | None = None,
        eos_window: int = 32,
        expansion_threshold: float = 0.5,
        step: int = 8,
        cap: int = 2048,
    ) -> None:
        if (ratios is None) == (start is None):
            raise InputError("selector 'daedal'", "starts nowhere, or twice", "Give either `ratios` or `start`.")
        self._ratio, self._start, self._window = ratios, start, eos_window
        self._threshold, self._step, self._cap = expansion_threshold, step, cap

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        most = self._cap if sentence.room is None else min(self._cap, sentence.room)
        length = min(self._first(sentence), most)
        while length in probes:
            if length == most or self._confidence(probes[length]) >= self._threshold:
                return ()
            length = min(length + self._step, most)
        return (length,)

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(max(probes), {length: -self._confidence(reading) for length, reading in probes.items()})

    def _first(self, sentence: Sentence) -> int:
        return self._start or candidate_length(self._ratio, sentence.source_tokens)

    def _confidence(self, reading: Reading) -> float:
        """Of an all-mask canvas; the EOS is a slot's most probable token where the two have one log-probability."""
        known = zip(reading.logprobs, reading.eos_logprobs, strict=True)
        return eos_confidence([math.exp(eos) for best, eos in known if eos >= best], self._window)


def eos_confidence(chances: Sequence[float], window: int) -> float:
    """The sum of the last ``window`` p(EOS) of slots whose most probable token it is, over ``window``: slots that are
    missing count as zeros."""
    return math.fsum(chances[-window:]) / window
