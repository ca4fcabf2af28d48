"""Requests to the model: answered from the store, else computed, those of many sentences in the same passes.

The work on one sentence is a generator. It yields the requests whose results it needs next, is sent these results, and
returns what it makes of them::

    def work(prompt):
        readings = yield [Probe(prompt, length) for length in (9, 12)]
        return min(map(mean_entropy, readings))
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from entropy_valley.engine.queue import Canvas, Decoded, Queue
from entropy_valley.engine.reading import Reading
from entropy_valley.progress import progress

if TYPE_CHECKING:
    from entropy_valley.engine.engine import Engine
    from entropy_valley.engine.ledger import Ledger
    from entropy_valley.engine.order import Order
    from entropy_valley.model.load import Backbone
    from entropy_valley.store import Store

Canvases = Generator[Canvas, Reading | Decoded, Any]
Work = Generator[Sequence["Request"], list[Any], Any]


class Request(Protocol):
    """What is asked of the model about one canvas: to read it or to denoise it. ``result`` is the class of the answer,
    which has ``to_json`` and ``from_json`` for the store."""

    result: ClassVar[type]

    def key(self, checkpoint: str, numerics: str) -> str:
        """The name of the result in the store."""
        ...

    def canvases(self, backbone: Backbone, known: Callable[[Request], Any]) -> Canvases:
        """Yield the canvases that the engine is to run, one after the other, and return the result.

        ``known`` gives another request's result where the store has it, else None.
        """
        ...


@dataclass(frozen=True)
class Memo:
    """The store, and what a result depends on beside its request: the checkpoint, and how device and torch round."""

    store: Store
    checkpoint: str
    numerics: str

    def key(self, request: Request) -> str:
        return request.key(self.checkpoint, self.numerics)

    def get(self, request: Request) -> Any | None:
        """The stored result, None if there is none."""
        value = self.store.get(self.key(request))
        return None if value is None else request.result.from_json(value)


@dataclass(frozen=True)
class Runner:
    """Does work on many sentences at once, with one engine; ``engine`` loads it, and is called at the first miss.

    With a ``memo`` nothing is computed that the store has or that another sentence has asked for, and each result is
    stored as soon as it is finished; without one every request is computed. ``bar`` names the progress bar, if any.
    """

    engine: Callable[[], Engine]
    ledger: Ledger
    memo: Memo | None = None
    bar: str | None = None

    def run(self, works: Iterable[tuple[Any, Work]], order: Order | None = None) -> Iterator[tuple[Any, Any]]:
        """(name, result) of each piece of work as soon as it is done: none waits for the slowest.

        ``order`` is the reveal order of all canvases that are denoised by one.
        """
        return _Run(self, works).results(order)

    def answers(self, requests: Sequence[Request], order: Order | None = None) -> list[Any]:
        """The result of each request."""

        def work() -> Work:
            return (yield requests)

        ((_, results),) = self.run([(None, work())], order)
        return results


@dataclass
class _Piece:
    """One sentence's work, the results that it waits for, and how many of them are missing."""

    name: Any
    work: Work
    results: list[Any] | None = None  # what a generator is sent first
    missing: int = 0


@dataclass
class _Computation:
    """A request that the model must answer, and who waits for it: pieces of work, and the place in their results."""

    request: Request
    key: str | None
    waiting: list[tuple[_Piece, int]] = field(default_factory=list)
    canvases: Canvases | None = None


class _Run:
    def __init__(self, runner: Runner, works: Iterable[tuple[Any, Work]]) -> None:
        self._ledger, self._memo, self._runner = runner.ledger, runner.memo, runner
        self._ready = deque(_Piece(name, work) for name, work in works)  # pieces whose results are all there
        self._new: deque[_Computation] = deque()
        self._pending: dict[str, _Computation] = {}
        self._queue, self._bar = Queue(), None

    def results(self, order: Order | None) -> Iterator[tuple[Any, Any]]:
        yield from self._go_on()
        if not self._new:
            return
        bar, total = self._runner.bar, len(self._new)
        engine = self._runner.engine()
        with progress(total=total, description=bar, unit="result") if bar else contextlib.nullcontext() as self._bar:
            yield from self._go_on(engine.backbone)
            for computation, result in engine.run(self._queue, order):
                self._compute(computation, result)
                yield from self._go_on(engine.backbone)

    def _go_on(self, backbone: Backbone | None = None) -> Iterator[tuple[Any, Any]]:
        """Go on with all work as far as results are there, and start what must be computed, if there is a model."""
        while self._ready or (backbone and self._new):
            if self._ready:
                yield from self._resume(self._ready.popleft())
            else:
                computation = self._new.popleft()
                computation.canvases = computation.request.canvases(backbone, self._known)
                self._compute(computation, None)

    def _resume(self, piece: _Piece) -> Iterator[tuple[Any, Any]]:
        try:
            requests = piece.work.send(piece.results)
        except StopIteration as done:
            yield piece.name, done.value
            return
        piece.results, piece.missing = [None] * len(requests), len(requests)
        for place, request in enumerate(requests):
            self._ask(request, piece, place)
        if not requests:
            self._ready.append(piece)

    def _ask(self, request: Request, piece: _Piece, place: int) -> None:
        self._ledger.count(asked=1)
        if (known := self._known(request)) is not None:
            self._answer(piece, place, known)
            return
        key = self._memo and self._memo.key(request)
        computation = self._pending.get(key)
        if computation is None:
            computation = _Computation(request, key)
            self._new.append(computation)
            self._ledger.count(computed=1)
            if self._memo:
                self._pending[key] = computation
            if self._bar is not None:
                self._bar.total += 1
        computation.waiting.append((piece, place))

    def _known(self, request: Request) -> Any | None:
        return self._memo and self._memo.get(request)

    def _compute(self, computation: _Computation, result: Reading | Decoded | None) -> None:
        """Put the next canvas of a computation into the queue, or finish it."""
        try:
            self._queue.put(computation, computation.canvases.send(result))
        except StopIteration as done:
            self._finish(computation, done.value)

    def _finish(self, computation: _Computation, result: Any) -> None:
        self._ledger.count(**getattr(computation.request, "counts", {}))
        if self._memo:
            self._memo.store.put(computation.key, result.to_json())
            del self._pending[computation.key]
        if self._bar is not None:
            self._bar.update()
        for piece, place in computation.waiting:
            self._answer(piece, place, result)

    def _answer(self, piece: _Piece, place: int, result: Any) -> None:
        piece.results[place] = result
        piece.missing -= 1
        if not piece.missing:
            self._ready.append(piece)
