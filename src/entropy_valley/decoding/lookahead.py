"""The lookahead: canvases as their next steps will leave them, if what their last reading says holds.

It is for passes that have room, as the last ones of a queue and those of a single sentence. The last reading of a
canvas has a token and a score for each slot that is still masked: by these its next states are guessed. They run beside
the canvas, and where its own reading leads to the guessed state, that one's reading is there already; a wrong guess is
thrown away. So no result changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from entropy_valley.decoding.batch import Batch


@dataclass(frozen=True)
class Lookahead:
    """Guessed states of canvases, behind these in a pass. Each ``follows`` a canvas or another guess: its place among
    those of the pass that are denoised, the guessed ones included."""

    states: list[Batch]
    follows: list[int]

    @classmethod
    def behind(cls, batch: Batch, depth: int, room: int, eos_id: int) -> Self:
        """The guessed states behind those of a batch: the next one of each canvas, then the second ones, and so on up
        to ``depth``, as far as there is ``room`` for their rows.

        A canvas that was not read yet has none. Nor has one whose passes compute its prompt for later ones: these need
        that first.
        """
        pairs = list(zip(batch.canvases, batch.steps, strict=True))
        known = np.array([step > 0 and canvas.reuse.refresh is None for canvas, step in pairs], dtype=bool)
        denoised = batch.denoised
        states, places, end = batch.select(known), (np.cumsum(denoised) - 1)[known], int(denoised.sum())
        ahead = cls([], [])
        for _ in range(depth):
            costs = np.cumsum([canvas.cost for canvas in states.canvases])
            if not (costs <= room).any():
                break
            fits = costs <= room
            room -= int(costs[fits][-1])
            states, goes_on = states.foreseen(fits, eos_id)
            ahead.states.append(states)
            ahead.follows.extend(places[fits][goes_on].tolist())
            places = np.arange(end, end + len(states.canvases))
            end += len(places)
        return ahead

    def followed(self, batch: Batch) -> tuple[Batch, list[bool]]:
        """The batch after a step of all of it, the guessed states taken out: where a canvas has reached the one that
        follows it, that one's step is its next. And which guesses were right."""
        own, guessed = batch.rows(), []
        for state in self.states:
            guessed += [state.ids[rows] for rows in state.rows()]
        count = len(own) - len(guessed)
        right = [True] * count + [False] * len(guessed)
        last = right.copy()
        for place, (before, ids) in enumerate(zip(self.follows, guessed, strict=True), count):
            if right[before] and np.array_equal(batch.ids[own[before]], ids):
                right[place] = last[place] = True
                last[before] = False
                logprob = batch.logprob[own[place]]
                np.copyto(logprob, batch.logprob[own[before]], where=np.isnan(logprob))
        return batch.select(last), right[count:]
