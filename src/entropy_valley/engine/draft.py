"""Canvases that are revealed in part and then read: a look at a canvas that has some context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from entropy_valley import files
from entropy_valley.engine.probe import Probe
from entropy_valley.engine.queue import Canvas
from entropy_valley.engine.reading import VALUES, Reading
from entropy_valley.revisions import DECODING

if TYPE_CHECKING:
    from entropy_valley.engine.requests import Canvases, Request
    from entropy_valley.model.load import Backbone


@dataclass(frozen=True)
class Draft:
    """The request for the reading of ``length`` masks behind a prompt after ``steps`` of ``steps`` + 1 steps.

    A step reveals the slots of the lowest entropy, so many that ⌊L·t/T⌋ of them are revealed after step t. The reading
    has all slots: of a revealed one what its own step read, of the others what the last pass reads.
    """

    result: ClassVar[type] = Reading

    prompt: Sequence[int]
    length: int
    steps: int

    def key(self, checkpoint: str, numerics: str) -> str:
        return files.digest(["draft", DECODING, checkpoint, numerics, list(self.prompt), self.length, self.steps])

    def canvases(self, backbone: Backbone, known: Callable[[Request], Any]) -> Canvases:
        mask, hidden = backbone.mask_id, list(range(self.length))
        tokens, seen = [mask] * self.length, [()] * self.length
        reading = known(Probe(self.prompt, self.length))
        for step in range(self.steps + 1):
            if reading is None:
                revealed = len(hidden) < self.length
                reading = yield Canvas(self.prompt, self.length, tokens=list(tokens) if revealed else None)
            for slot, values in zip(
                hidden, zip(*(getattr(reading, name) for name in VALUES), strict=True), strict=True
            ):
                seen[slot] = values
            count = self._revealed(step + 1) - self._revealed(step) if step < self.steps else 0
            for slot in sorted(hidden, key=lambda slot: (seen[slot][1], slot))[:count]:
                tokens[slot] = seen[slot][0]
            hidden = [slot for slot in hidden if tokens[slot] == mask]
            reading = None if count else reading  # nothing revealed: the next pass would read the same
        return Reading(*zip(*seen, strict=True))

    def _revealed(self, step: int) -> int:
        return self.length * step // (self.steps + 1)
