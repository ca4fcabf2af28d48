"""Work on many sentences at once: their requests are answered from the store, else by the engine in the same passes.

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
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.decoding.canvas import FinishedText, Ledger, Queue
from entropy_valley.progress import progress
from entropy_valley.revisions import DECODING

if TYPE_CHECKING:
    from entropy_valley.decoding.engine import Engine
    from entropy_valley.decoding.orders import Order
    from entropy_valley.decoding.requests import Canvases, Request
    from entropy_valley.store import Store

Work = Generator[Sequence["Request"], list[Any], Any]


@dataclass(frozen=True)
class Memo:
    """The store, and what a result depends on beside its request: the checkpoint, and how device and torch round."""

    store: Store
    checkpoint: str
    numerics: str

    def key(self, request: Request) -> str:
        """The name of a result in the store."""
        kind, *of_result = request.key
        return files.digest([kind, DECODING, self.checkpoint, self.numerics, *of_result])

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
        return _Stream(self, works).results(order)

    def answers(self, requests: Sequence[Request]) -> list[Any]:
        """The result of each request."""

        def work() -> Work:
            return (yield requests)

        ((_, results),) = self.run([(None, work())])
        return results


@dataclass
class _Piece:
    """One sentence's work, the results that it waits for (None: it has not begun), and how many of them are missing."""

    name: Any
    work: Work
    results: Any = None
    missing: int = 0


@dataclass(eq=False)
class _Computation:
    """A request that the model must answer, its key in the store ("" without a store), and who waits for it: pieces of
    work, and the place in their results. It has ``canvases`` as soon as there is a model."""

    request: Request
    key: str
    waiting: list[tuple[_Piece, int]] = field(default_factory=list)
    canvases: Canvases = field(init=False)


class _Stream:
    def __init__(self, runner: Runner, works: Iterable[tuple[Any, Work]]) -> None:
        self._ledger, self._memo, self._runner = runner.ledger, runner.memo, runner
        self._ready = deque(_Piece(name, work) for name, work in works)  # pieces whose results are all there
        self._new: deque[_Computation] = deque()
        self._pending: dict[str, _Computation] = {}
        self._bar = None

    def results(self, order: Order | None) -> Iterator[tuple[Any, Any]]:
        yield from self._go_on()
        if not self._new:
            return
        bar, total = self._runner.bar, len(self._new)
        engine = self._runner.engine()
        self._queue = Queue(by_prompt=engine.prompts.are_shared)
        with progress(total=total, description=bar, unit="result") if bar else contextlib.nullcontext() as self._bar:
            yield from self._go_on(engine)
            for computation, result in engine.run(self._queue, order):
                self._compute(engine, computation, result)
                yield from self._go_on(engine)

    def _go_on(self, engine: Engine | None = None) -> Iterator[tuple[Any, Any]]:
        """Go on with all work as far as results are there, and start what must be computed, if there is an engine."""
        while True:
            if self._ready:
                yield from self._resume(self._ready.popleft())
            elif self._new and engine:
                computation = self._new.popleft()
                computation.canvases = computation.request.canvases(engine.backbone, self._stored)
                self._compute(engine, computation, None)
            else:
                return

    def _resume(self, piece: _Piece) -> Iterator[tuple[Any, Any]]:
        """Send a piece of work its results, and see what it asks for next: from the store, from a computation that
        runs already, or from a new one."""
        try:
            requests = piece.work.send(piece.results)
        except StopIteration as done:
            yield piece.name, done.value
            return
        piece.results, piece.missing, new = [None] * len(requests), len(requests), 0
        for place, request in enumerate(requests):
            if (stored := self._stored(request)) is not None:
                self._answer(piece, place, stored)
                continue
            key = self._memo.key(request) if self._memo else ""
            computation = self._pending.get(key)
            if computation is None:
                computation = _Computation(request, key)
                self._new.append(computation)
                new += 1
                if self._memo:
                    self._pending[key] = computation
                if self._bar is not None:
                    self._bar.total += 1
            computation.waiting.append((piece, place))
        self._ledger.count(requested=len(requests), computed=new)
        if not requests:
            self._ready.append(piece)

    def _stored(self, request: Request) -> Any | None:
        return self._memo.get(request) if self._memo else None

    def _compute(self, engine: Engine, computation: _Computation, result: Any) -> None:
        """Put the next canvas of a computation into the queue; after the last one store its result and hand it out."""
        try:
            canvas = computation.canvases.send(result)
            while isinstance(canvas, FinishedText):
                canvas = computation.canvases.send(engine.score(canvas))
            self._queue.put(computation, canvas)
            return
        except StopIteration as done:
            final = done.value
        if self._memo:
            self._memo.store.put(computation.key, final.to_json())
            del self._pending[computation.key]
        if self._bar is not None:
            self._bar.update()
        for piece, place in computation.waiting:
            self._answer(piece, place, final)

    def _answer(self, piece: _Piece, place: int, result: Any) -> None:
        piece.results[place] = result
        piece.missing -= 1
        if not piece.missing:
            self._ready.append(piece)
