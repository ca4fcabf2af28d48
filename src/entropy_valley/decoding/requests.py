"""What goes into the engine, what comes out of it, and who waits for it.

A :class:`Canvas` is read or denoised; the result is a :class:`Reading` or a :class:`Decoded`. The :class:`Queue` holds
the canvases that wait for a place in a pass. A :class:`Runner` answers :class:`Request`s: from the store, else by the
engine, those of many sentences in the same passes.

The work on one sentence is a generator. It yields the requests whose results it needs next, is sent these results, and
returns what it makes of them::

    def work(prompt):
        readings = yield [Probe(prompt, length) for length in (9, 12)]
        return min(map(mean_entropy, readings))
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from entropy_valley.progress import progress

if TYPE_CHECKING:
    from entropy_valley.decoding.engine import Engine
    from entropy_valley.decoding.orders import Order
    from entropy_valley.model.load import Backbone
    from entropy_valley.store import Store


SHORTEST = 2  # slots: one of content and the EOS's

VALUES = ("tokens", "entropies", "logprobs", "eos_logprobs")  # what every reading has, in the order of its columns


@dataclass(frozen=True)
class Reading:
    """One value per slot, in slot order: most probable token, entropy of its distribution, log-probabilities of that
    token and of the EOS; and its SIG (see :mod:`entropy_valley.decoding.head`), where the canvas was read without the
    source too.

    Nats; the mask token has no probability. JSON keeps every bit of a float, so a decode that starts from a stored
    reading is the decode that computes it.
    """

    tokens: tuple[int, ...]
    entropies: tuple[float, ...]
    logprobs: tuple[float, ...]
    eos_logprobs: tuple[float, ...]
    sigs: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value or name != "sigs"}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        columns = [tuple(value[key]) for key in VALUES]
        sum(map(sum, columns))  # TypeError for what is no number
        return cls(*columns, tuple(value.get("sigs", ())))


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
        self.heap: list[tuple[Any, int, Any, Canvas]] = []
        self._arrivals, self._shared = itertools.count(), False
        self.sources: Counter[Source] = Counter()  # of the canvases that wait
        for name, canvas in canvases:
            self.put(name, canvas)

    def __len__(self) -> int:
        return len(self.heap)

    def share(self, shared: bool) -> None:
        """Say whether all canvases behind a prompt share its rows."""
        if shared != self._shared:
            self._shared, self.heap, waiting = shared, [], sorted(self.heap, key=lambda entry: entry[1])
            self.sources.clear()
            for *_, name, canvas in waiting:
                self.put(name, canvas)

    def put(self, name: Any, canvas: Canvas) -> None:
        """Let a canvas wait; its result will come under ``name``."""
        self.sources.update(canvas.sources(self._shared))
        heapq.heappush(self.heap, (self._rank(canvas), next(self._arrivals), name, canvas))

    def _rank(self, canvas: Canvas) -> tuple[Any, ...]:
        begun = bool(canvas.start or canvas.tokens)
        if self._shared:
            return not begun, -len(canvas.prompt), tuple(canvas.prompt)
        return not begun, -(canvas.cost if canvas.beside is None else len(canvas.prompt) + canvas.beside)

    def first(self) -> Canvas:
        """The canvas whose turn it is."""
        return self.heap[0][-1]

    def take(self) -> tuple[Any, Canvas]:
        """The canvas whose turn it is, by its name; it does not wait any longer."""
        name, canvas = heapq.heappop(self.heap)[-2:]
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


Canvases = Generator[Canvas, Reading | Decoded, Any]

Work = Generator[Sequence["Request"], list[Any], Any]


class Request(Protocol):
    """What is asked of the model about one canvas: to read it or to denoise it. ``result`` is the class of the answer,
    which has ``to_json`` and ``from_json`` for the store."""

    result: ClassVar[type]

    def key(self, checkpoint: str, numerics: str) -> str:
        """The name of the result in the store."""
        ...

    def canvases(self, backbone: Backbone, stored: Callable[[Request], Any]) -> Canvases:
        """Yield the canvases that the engine is to run, one after the other, and return the result.

        ``stored`` gives another request's result where the store has it, else None.
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
                computation.canvases = computation.request.canvases(backbone, self._stored)
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
        if (stored := self._stored(request)) is not None:
            self._answer(piece, place, stored)
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

    def _stored(self, request: Request) -> Any | None:
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


@dataclass
class Ledger:
    """Counts of one job. Unlike the rows' counts they depend on what the store held, so no declared output has them.

    ``asked`` and ``computed`` count results: canvases, sentences of a beam search, or a length head. ``passes``,
    ``tokens`` and ``rows`` are forward passes, tokens in them, and rows of the LM head; ``padded`` are tokens of dummy
    sequences, which are in none of these; ``loads`` are models loaded.
    """

    asked: int = 0
    computed: int = 0
    passes: int = 0
    tokens: int = 0
    rows: int = 0
    padded: int = 0
    loads: int = 0

    def count(self, **counts: int) -> None:
        """Add to the counts by name."""
        for name, value in counts.items():
            setattr(self, name, getattr(self, name) + value)

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    def text(self) -> str:
        """One line for the log."""
        padding = f" and {self.padded} of padding" if self.padded else ""
        return (
            f"{self.asked} results asked for, {self.asked - self.computed} shared, {self.computed} computed "
            f"in {self.passes} passes of {self.tokens} tokens{padding}, {self.rows} head rows; "
            f"models loaded: {self.loads}"
        )
