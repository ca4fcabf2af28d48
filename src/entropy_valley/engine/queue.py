"""What goes into the engine and what comes out of it."""

from __future__ import annotations

import functools
import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from entropy_valley.engine.reading import Reading

Prompt = tuple[int, ...]
Source = tuple[Prompt, int]  # a prompt, and how many masked slots behind it its rows see


@dataclass(frozen=True)
class Canvas:
    """``length`` masked slots behind a prompt, and how many to reveal at each step that reveals any.

    Without ``counts`` it is only to be read. ``start`` is the known reading of the all-mask canvas: the pass of the
    first step is then not run again, unless the order looks at the SIG there. ``sourceless`` is the prompt with an
    empty source: for orders that look at the SIG, or for a reading that is to have it. ``tokens``: the slots of a
    canvas to be read that is revealed in part, the mask id in the others. ``sigs``: the SIG of each slot, where an
    order knows it before the first step, or whether it is an anchor; ``budget``: the step budget T, where an order
    looks at it. ``sentence`` is its name in errors.

    For an approximation, the rows of the prompt may be computed in some passes only, with those of the canvas: with
    ``refresh`` in each pass whose number (from 0) is a multiple of it, and ``beside`` in one over an all-mask canvas of
    that many slots behind the same prompt. In other passes the slots attend to the keys and values that those had.
    ``is_source``: canvases ``beside`` this one may come when it is done.
    """

    prompt: Sequence[int]
    length: int
    counts: Sequence[int] = ()
    start: Reading | None = None
    sourceless: Sequence[int] | None = None
    tokens: Sequence[int] | None = None
    sigs: Sequence[float] = ()
    budget: int = 0
    sentence: object = None
    refresh: int | None = None
    beside: int | None = None
    is_source: bool = False

    @functools.cached_property
    def prompts(self) -> list[Prompt]:
        """Its prompt, and that without the source, if it has one."""
        return [tuple(prompt) for prompt in (self.prompt, self.sourceless) if prompt is not None]

    @functools.cached_property
    def size(self) -> int:
        """Tokens of prompt and canvas."""
        return len(self.prompt) + self.length

    @functools.cached_property
    def cost(self) -> int:
        """The most tokens that one pass over it takes."""
        return self.size + (0 if self.sourceless is None else len(self.sourceless) + self.length)

    def sources(self, shared: bool) -> list[Source]:
        """The sequences that compute the rows of its prompts; none if its own passes do.

        ``shared``: all canvases behind a prompt share its rows, which see none of them.
        """
        slots = 0 if shared else self.beside
        return [] if slots is None else [(prompt, slots) for prompt in self.prompts]


class Queue:
    """Named canvases that wait for a place in a pass; more may be put while the engine runs.

    First come those that are on their way (a known first step, or revealed in part), then the longest: what needs most
    passes is not left for the end, where passes would be nearly empty. Canvases whose prompt's rows have one source
    come one after the other.
    """

    def __init__(self, canvases: Iterable[tuple[Any, Canvas]] = ()) -> None:
        self._heap: list[tuple[Any, int, Any, Canvas]] = []
        self._arrivals, self._shared = itertools.count(), False
        self.sources: Counter[Source] = Counter()  # of the canvases that wait
        for name, canvas in canvases:
            self.put(name, canvas)

    def __len__(self) -> int:
        return len(self._heap)

    def share(self, shared: bool) -> None:
        """Say whether all canvases behind a prompt share its rows."""
        if shared != self._shared:
            self._shared, self._heap, waiting = shared, [], sorted(self._heap, key=lambda entry: entry[1])
            self.sources.clear()
            for *_, name, canvas in waiting:
                self.put(name, canvas)

    def put(self, name: Any, canvas: Canvas) -> None:
        """Let a canvas wait; its result will come under ``name``."""
        self.sources.update(canvas.sources(self._shared))
        heapq.heappush(self._heap, (self._rank(canvas), next(self._arrivals), name, canvas))

    def _rank(self, canvas: Canvas) -> tuple[Any, ...]:
        begun = bool(canvas.start or canvas.tokens)
        if self._shared:
            return not begun, -len(canvas.prompt), tuple(canvas.prompt)
        return not begun, -(canvas.cost if canvas.beside is None else len(canvas.prompt) + canvas.beside)

    def first(self) -> Canvas:
        """The canvas whose turn it is."""
        return self._heap[0][-1]

    def take(self) -> tuple[Any, Canvas]:
        """The canvas whose turn it is, by its name; it does not wait any longer."""
        name, canvas = heapq.heappop(self._heap)[-2:]
        for source in canvas.sources(self._shared):
            self.sources[source] -= 1
            if not self.sources[source]:
                del self.sources[source]
        return name, canvas


@dataclass(frozen=True)
class Decoded:
    """A decoded canvas.

    ``tokens``: all L ids; the mask id where the text was settled before the slot was reached. ``text``: how many
    come before the first EOS. ``logprob``: the mean, over those, of each token's log-probability in the pass that
    revealed it (nats, four decimals); None for an empty text. ``passes``: how many the canvas needs by itself, the
    all-mask one included, wherever that was run, and those without the source apart.
    """

    tokens: list[int]
    text: int
    logprob: float | None
    passes: int

    def to_json(self) -> dict[str, Any]:
        return vars(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        sum(value["tokens"], value["text"] + value["passes"])  # TypeError for what is no number
        return cls(**value)
