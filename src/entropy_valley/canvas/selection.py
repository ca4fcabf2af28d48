"""From sentences and a length method to canvas rows, probing only what the method asks for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley.backbone.prompt import Prompt
from entropy_valley.canvas.length_methods import LengthMethod, Sentence, find_method, make_method
from entropy_valley.canvas.statistics import LengthStatistics
from entropy_valley.engine.reading import Reading
from entropy_valley.errors import InputError

Probe = Callable[[Sequence[tuple[int, int]]], Sequence[Reading]]


class Selection:
    """One sentence on its way to a canvas: what its method has seen, and what it waits for."""

    def __init__(self, method: LengthMethod, sentence: Sentence) -> None:
        self._method, self._sentence = method, sentence
        self.probes: dict[int, Reading] = {}
        self._asked: set[int] = set()

    def proposals(self) -> list[int]:
        """The lengths to be probed next; none while readings are missing, or once the canvas can be chosen."""
        if self.waits:
            return []
        self._asked |= set(self._method.propose(self._sentence, self.probes))
        return sorted(self._asked - self.probes.keys())

    @property
    def waits(self) -> bool:
        """Whether some of the proposed lengths are not read yet."""
        return len(self._asked) > len(self.probes)

    def row(self) -> dict[str, Any]:
        """The choice, ``{length, candidates, scores, calls, slots}`` and perhaps ``contenders``.

        ``candidates`` are the compared lengths, ascending, with their ``scores``; where nothing is compared, the
        chosen length alone. ``calls`` and ``slots`` are the probes as the paper counts them: passes, and canvas slots
        in them; the pass over the prompt that a length head reads is one more, of no slots. ``contenders``, only where
        there are several: the lengths that are all to be decoded, ascending, ``length`` among them, and of the others
        those for which there is room.
        """
        choice = self._method.choose(self._sentence, self.probes)
        contenders = sorted({choice.length, *filter(self._has_room, choice.contenders)})
        compared = sorted(choice.scores)
        return {
            "length": choice.length,
            "candidates": compared or [choice.length],
            "scores": [choice.scores[length] for length in compared],
            "calls": len(self.probes) + (self._sentence.predicted is not None),
            "slots": sum(self.probes),
            **({"contenders": contenders} if len(contenders) > 1 else {}),
        }

    def _has_room(self, length: int) -> bool:
        return self._sentence.room is None or length <= self._sentence.room


def choose_canvases(method: LengthMethod, sentences: Sequence[Sentence], probe: Probe) -> list[dict[str, Any]]:
    """The row of each sentence (see :meth:`Selection.row`).

    ``probe`` reads all-mask canvases, each named by (sentence index, slots), all sentences of a round together.
    """
    selections = [Selection(method, sentence) for sentence in sentences]
    while asked := [(index, length) for index, one in enumerate(selections) for length in one.proposals()]:
        for (index, length), reading in zip(asked, probe(asked), strict=True):
            selections[index].probes[length] = reading
    return [selection.row() for selection in selections]


def sentences_of(
    rows: Sequence[Mapping[str, str]],
    prompt: Prompt,
    method: LengthMethod,
    predicted: Iterable[Mapping[int, float] | None] = (),
    rooms: Iterable[int | None] = (),
) -> list[Sentence]:
    """What the method may know of each row of the test set: of the target nothing, unless it says it sees it.

    ``predicted`` is what a length head says of each row, for a method that uses it; ``rooms`` are the slots that the
    context leaves for each.
    """
    return [
        Sentence(
            len(prompt.tokens(row["source"])),
            len(prompt.tokens(row["target"])) if method.sees_reference else None,
            lengths,
            room,
        )
        for row, lengths, room in itertools.zip_longest(rows, predicted, rooms)
    ]


def read_method(name: str, settings: Mapping[str, Any], statistics: Path | None) -> LengthMethod:
    """A length method from its settings; with the length statistics of its run, read from a file, if it uses them.

    Raises :class:`InputError` where they are needed and not given.
    """
    if not getattr(find_method(name, settings), "uses_statistics", False):
        return make_method(name, settings)
    if statistics is None:
        raise InputError(f"length method {name!r}", "needs length statistics", "Give them as --statistics.")
    return make_method(name, settings, LengthStatistics.read(statistics))
