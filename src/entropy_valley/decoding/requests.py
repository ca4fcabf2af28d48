"""The requests that fill a canvas: by a reveal order in a schedule, or by a variable-length decoder."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from entropy_valley.decoding.variable_length.base import Guess
from entropy_valley.engine.keys import decode_key, variable_length_key
from entropy_valley.engine.probe import Probe
from entropy_valley.engine.queue import Canvas, Decoded

if TYPE_CHECKING:
    from entropy_valley.backbone.loading import Backbone
    from entropy_valley.decoding.variable_length.base import Slots, VariableLengthDecoder
    from entropy_valley.engine.reading import Reading
    from entropy_valley.engine.requests import Canvases, Request


@dataclass(frozen=True)
class FixedLength:
    """A canvas to be revealed in its schedule by the order of that name and settings; the engine runs the order."""

    canvas: Canvas
    order: str
    settings: Mapping[str, Any]

    def key(self, checkpoint: str, numerics: str) -> str:
        return decode_key(checkpoint, numerics, self.canvas, self.order, self.settings)

    def from_json(self, value: dict[str, Any]) -> Decoded:
        return Decoded.from_json(value)

    def canvases(self, backbone: Backbone, known: Callable[[Request], Any]) -> Canvases:
        start = self.canvas.start or known(Probe(self.canvas.prompt, self.canvas.length))
        return (yield dataclasses.replace(self.canvas, start=start))


@dataclass(frozen=True)
class DecodedVariableLength(Decoded):
    """A decoded canvas of its final length; ``slots`` summed over all its passes, ``rows`` the masked ones of these."""

    slots: int
    rows: int


@dataclass(frozen=True)
class VariableLength:
    """``length`` masks behind a prompt that may grow to ``most``, to be denoised by the decoder of that name and
    settings.

    ``start`` is the known reading of these masks: the first pass is then not run again.
    """

    decoder: VariableLengthDecoder
    prompt: Sequence[int]
    length: int
    most: int
    name: str = ""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    start: Reading | None = None

    def key(self, checkpoint: str, numerics: str) -> str:
        return variable_length_key(checkpoint, numerics, self.prompt, self.length, self.name, self.settings)

    def from_json(self, value: dict[str, Any]) -> DecodedVariableLength:
        return DecodedVariableLength.from_json(value)

    def canvases(self, backbone: Backbone, known: Callable[[Request], Any]) -> Canvases:
        slots: Slots = [None] * self.length
        passes = run = rows = 0
        reading = self.start or known(Probe(self.prompt, self.length))
        while None in slots:
            if reading is None:
                tokens = [backbone.mask_id if slot is None else slot.token for slot in slots]
                reading = yield Canvas(self.prompt, len(slots), tokens=tokens if passes else None)
            run, rows = run + len(slots), rows + slots.count(None)
            guesses = map(Guess, reading.tokens, reading.logprobs, reading.eos_logprobs)
            seen = [next(guesses) if slot is None else slot for slot in slots]
            slots, reading = self.decoder.advance(seen, backbone.eos_id, passes, self.most), None
            passes += 1
        tokens = [slot.token for slot in slots]
        text = tokens.index(backbone.eos_id) if backbone.eos_id in tokens else len(tokens)
        mean = round(math.fsum(slot.logprob for slot in slots[:text]) / text, 4) if text else None
        return DecodedVariableLength(tokens, text, mean, passes, run, rows)
