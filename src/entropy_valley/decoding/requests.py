"""The requests that fill a canvas: by a reveal order in a schedule, or by a variable-length decoder."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from entropy_valley import files
from entropy_valley.decoding.variable_length.base import Guess, advanced
from entropy_valley.engine.probe import Probe
from entropy_valley.engine.queue import Canvas, Decoded
from entropy_valley.revisions import DECODING, SOURCE_GUIDED

if TYPE_CHECKING:
    from entropy_valley.decoding.variable_length.base import Slots, VariableLengthDecoder
    from entropy_valley.engine.reading import Reading
    from entropy_valley.engine.requests import Canvases, Request
    from entropy_valley.model.load import Backbone


@dataclass(frozen=True)
class FixedLength:
    """A canvas to be revealed in its schedule by the order of that name and settings; the engine runs the order.

    One with a ``refresh`` begins with a pass over its prompt, be the reading of its masks known or not.
    """

    result: ClassVar[type] = Decoded

    canvas: Canvas
    order: str
    settings: Mapping[str, Any]
    distractor: Sequence[int] | None = None

    def key(self, checkpoint: str, numerics: str) -> str:
        """The step budget T is not in it, unless the order looks at it: for L ≤ T all T reveal one slot in each of L
        steps, and are one decode. A stepwise SIG, which was the only one, goes unsaid; one against a distractor is that
        prompt's, and anchors are known by their slots."""
        it, known = self.canvas, {"sig": "stepwise_kl"}.items()
        compared = it.sourceless and list(it.sourceless)
        if self.distractor is not None:
            compared = [SOURCE_GUIDED, list(self.distractor), it.budget]
        canvas = [list(it.prompt), compared, it.length, list(it.counts)]
        canvas += [] if it.refresh is None else ["refresh", it.refresh]
        settings = {name: value for name, value in self.settings.items() if (name, value) not in known}
        return files.digest(["decode", DECODING, checkpoint, numerics, *canvas, self.order, settings])

    def canvases(self, backbone: Backbone, known: Callable[[Request], Any]) -> Canvases:
        if self.canvas.refresh is not None:
            return (yield self.canvas)
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

    ``start`` is the known reading of these masks: the first pass is then not run again. ``sentence`` is its name in
    errors.
    """

    result: ClassVar[type] = DecodedVariableLength

    decoder: VariableLengthDecoder
    prompt: Sequence[int]
    length: int
    most: int
    name: str = ""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    start: Reading | None = None
    sentence: object = None

    def key(self, checkpoint: str, numerics: str) -> str:
        parts = [list(self.prompt), self.length, self.name, dict(self.settings)]
        return files.digest(["filling", DECODING, checkpoint, numerics, *parts])

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
            # A slot that was revealed as a mask is read again, and stays as it is.
            read = [next(guesses) if slot is None or slot.token == backbone.mask_id else slot for slot in slots]
            seen = [guess if slot is None else slot for slot, guess in zip(slots, read, strict=True)]
            about, reading = f"sentence {self.sentence!r}, pass {passes}", None
            slots = advanced(self.decoder, seen, backbone.eos_id, passes, self.most, about)
            passes += 1
        tokens = [slot.token for slot in slots]
        text = tokens.index(backbone.eos_id) if backbone.eos_id in tokens else len(tokens)
        mean = round(math.fsum(slot.logprob for slot in slots[:text]) / text, 4) if text else None
        return DecodedVariableLength(tokens, text, mean, passes, run, rows)
