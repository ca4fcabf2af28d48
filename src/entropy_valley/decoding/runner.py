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
        return None if value is None else request.result(**value)


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
        stream = _Stream(self.ledger, self.memo, deque(_Piece(name, work) for name, work in works))
        # Without a model first: a job that finds all in the store never loads one.
        yield from stream.go_on()
        if not stream.new:
            return
        total, engine = len(stream.new), self.engine()
        stream.engine, stream.queue = engine, Queue(shared=engine.prompts.are_shared)
        shown = progress(total=total, description=self.bar, unit="result") if self.bar else contextlib.nullcontext()
        with shown as stream.bar:
            yield from stream.go_on()
            # The queue grows meanwhile: a result may let a sentence ask for more, which joins the next pass.
            for computation, result in engine.run(stream.queue, order):
                stream.compute(computation, result)
                yield from stream.go_on()

    def answers(self, requests: Sequence[Request]) -> list[Any]:
        """The result of each request."""

        def work() -> Work:
            return (yield requests)

        ((_, results),) = self.run([(None, work())])  # one piece of work that asks once
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


@dataclass
class _Stream:
    """Pieces of work on their way: those whose results are all ``ready``, and the ``new`` computations that they wait
    for. The canvases of a computation go into the ``queue`` one after the other, as soon as there is an engine."""

    ledger: Ledger
    memo: Memo | None
    ready: deque[_Piece]
    new: deque[_Computation] = field(default_factory=deque)
    pending: dict[str, _Computation] = field(default_factory=dict)
    engine: Engine | None = None
    queue: Queue = field(default_factory=Queue)
    bar: Any = None

    def go_on(self) -> Iterator[tuple[Any, Any]]:
        """Go on with all work as far as results are there, and start what must be computed, if there is an engine."""
        while True:
            # Sentences first: what they ask for may be in the store, or be shared with another sentence.
            if self.ready:
                piece = self.ready.popleft()
                try:
                    requests = piece.work.send(piece.results)
                except StopIteration as done:
                    yield piece.name, done.value
                else:
                    self._ask(piece, requests)
            elif self.new and self.engine:
                computation = self.new.popleft()
                computation.canvases = computation.request.canvases(self.engine.backbone, self._stored)
                self.compute(computation, None)
            else:
                return

    def _ask(self, piece: _Piece, requests: Sequence[Request]) -> None:
        """Let a piece wait for results: from the store, from a computation that runs already, or from a new one."""
        piece.results, piece.missing, before = [None] * len(requests), len(requests), len(self.new)
        for place, request in enumerate(requests):
            if (stored := self._stored(request)) is not None:
                self._answer(piece, place, stored)
                continue
            # Without a store nothing is shared: each request is computed, as a benchmark of it wants.
            key = self.memo.key(request) if self.memo else ""
            computation = self.pending.get(key)
            if computation is None:
                computation = _Computation(request, key)
                self.new.append(computation)
                if self.memo:
                    self.pending[key] = computation
                if self.bar is not None:  # its total was taken before this was asked for
                    self.bar.total += 1
            computation.waiting.append((piece, place))
        self.ledger.update(requested=len(requests), computed=len(self.new) - before)
        if not requests:  # nothing will answer it
            self.ready.append(piece)

    def _stored(self, request: Request) -> Any | None:
        return self.memo.get(request) if self.memo else None

    def compute(self, computation: _Computation, result: Any) -> None:
        """Put the next canvas of a computation into the queue; after the last one store its result and hand it out."""
        try:
            canvas = computation.canvases.send(result)
            # A finished text has a pass of its own, at once: it waits for no company.
            while isinstance(canvas, FinishedText):
                canvas = computation.canvases.send(self.engine.score(canvas))  # type: ignore[union-attr]
            self.queue.put(computation, canvas)
            return
        except StopIteration as done:
            final = done.value
        if self.memo:  # at once: after a kill nothing that is finished is lost
            self.memo.store.put(computation.key, vars(final))
            del self.pending[computation.key]
        if self.bar is not None:
            self.bar.update()
        for piece, place in computation.waiting:
            self._answer(piece, place, final)

    def _answer(self, piece: _Piece, place: int, result: Any) -> None:
        piece.results[place] = result
        piece.missing -= 1
        if not piece.missing:
            self.ready.append(piece)
