"""What goes into the engine, what comes out of it, and who waits for it.

A :class:`Canvas` is read or denoised: the result is a :class:`ProbeResult` or a :class:`Decoded`. A :class:`Request`
asks for it; those that fill a canvas are in :mod:`.orders`. A :class:`Runner` answers the requests of many sentences,
from the store, else by the engine in the same passes.

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
import math
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

from entropy_valley import files
from entropy_valley.decoding.prompts import NO_REUSE, PromptIds, Reuse, SharedSource
from entropy_valley.progress import progress
from entropy_valley.revisions import DECODING

if TYPE_CHECKING:
    from entropy_valley.decoding.engine import Engine
    from entropy_valley.decoding.orders import Order
    from entropy_valley.store import Store


SHORTEST = 2  # slots: one of content and the EOS's

VALUES = ("tokens", "entropies", "logprobs", "eos_logprobs")  # what every reading has, in the order of its columns


# --- Canvases: what the engine runs, what it says of them, and those that wait.


class Result:
    """An answer of the model, in the store as JSON of its fields."""

    def to_json(self) -> dict[str, Any]:
        return vars(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**value)


@dataclass(frozen=True)
class ProbeResult(Result):
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
        return cls(**{name: tuple(column) for name, column in value.items()})


@dataclass(frozen=True)
class Canvas:
    """``length`` masked slots behind a prompt, and how many to reveal at each step that reveals any.

    Without ``counts`` it is only to be read. ``start`` is the known reading of the all-mask canvas: the pass of the
    first step is then not run again, unless the order looks at the SIG there. ``sourceless`` is the prompt with an
    empty source: for orders that look at the SIG, or for a reading that is to have it. ``tokens``: the slots of a
    canvas to be read that is revealed in part, the mask id in the others. ``sigs``: the SIG of each slot, where an
    order knows it before the first step, or whether it is an anchor; ``budget``: the step budget T, where an order
    looks at it. ``sentence`` is its name in errors. ``reuse`` says which passes compute the prompt, see
    :mod:`.prompts`.
    """

    prompt: Sequence[int]
    length: int
    counts: Sequence[int] = ()
    start: ProbeResult | None = None
    sourceless: Sequence[int] | None = None
    tokens: Sequence[int] | None = None
    sigs: Sequence[float] = ()
    budget: int = 0
    sentence: object = None
    reuse: Reuse = NO_REUSE

    @functools.cached_property
    def prompts(self) -> list[PromptIds]:
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

    @functools.cached_property
    def sources(self) -> list[SharedSource]:
        """The sequences that compute the rows of its prompts; none if its own passes do."""
        beside = self.reuse.beside
        return [] if beside is None else [(prompt, beside) for prompt in self.prompts]

    @functools.cached_property
    def shared_sources(self) -> list[SharedSource]:
        """The same where all canvases behind a prompt share its rows, which see none of them."""
        return [(prompt, 0) for prompt in self.prompts]


class Queue:
    """Canvases that wait for a place in a pass, each by a name of its own; more may be put while the engine runs.

    First come those that are on their way (a known first step, or revealed in part), then the longest, which need most
    passes: they are not left for the end, where passes would be nearly empty. Canvases whose passes share the rows of a
    prompt come one after the other; ``by_prompt``: so do all canvases of a prompt.
    """

    def __init__(self, canvases: Iterable[tuple[Any, Canvas]] = (), by_prompt: bool = False) -> None:
        self._by_prompt = by_prompt
        self.heap: list[tuple[bool, int, Sequence[int], int, Any, Canvas]] = []
        self._arrivals = itertools.count()
        self.sources: Counter[SharedSource] = Counter()  # that canvases here attend to, or would under prefix attention
        for name, canvas in canvases:
            self.put(name, canvas)

    def put(self, name: Any, canvas: Canvas) -> None:
        """Let a canvas wait; its result will come under ``name``."""
        self.sources.update([*canvas.sources, *canvas.shared_sources])
        prompt, slots = next(iter(canvas.sources), (canvas.prompts[0], canvas.length))
        new, size = not (canvas.start or canvas.tokens), len(prompt) + (0 if self._by_prompt else slots)
        heapq.heappush(self.heap, (new, -size, prompt, next(self._arrivals), name, canvas))

    def first(self) -> Canvas:
        """The canvas whose turn it is."""
        return self.heap[0][-1]

    def take(self) -> tuple[Any, Canvas]:
        """The canvas whose turn it is, by its name; it does not wait any longer."""
        name, canvas = heapq.heappop(self.heap)[-2:]
        for source in (*canvas.sources, *canvas.shared_sources):
            self.sources[source] -= 1
            if not self.sources[source]:
                del self.sources[source]
        return name, canvas


@dataclass(frozen=True)
class Decoded(Result):
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


# --- Requests: what reads a canvas of masks, one that is revealed in part, or a finished text.

Canvases = Generator[Canvas, Any, Any]  # it is sent the Decoded of a canvas with counts, the ProbeResult of another

Work = Generator[Sequence["Request"], list[Any], Any]


class Request(Protocol):
    """What is asked of the model about one canvas: to read it or to denoise it. ``result``: the class of the answer."""

    result: ClassVar[type[Result]]

    @property
    def key(self) -> list[Any]:
        """What the result is of, in the store; its kind first."""
        ...

    def canvases(self, engine: Engine, stored: Callable[[Request], Any]) -> Canvases:
        """Yield the canvases that the engine is to run, one after the other, and return the result.

        ``stored`` gives another request's result where the store has it, else None.
        """
        ...


@dataclass(frozen=True)
class Probe:
    """The request for the reading of ``length`` masks behind a prompt; with ``sourceless`` it has the SIG."""

    result: ClassVar[type] = ProbeResult

    prompt: Sequence[int]
    length: int
    sourceless: Sequence[int] | None = None
    reuse: Reuse = NO_REUSE

    @property
    def key(self) -> list[Any]:
        kind, sourceless = ("probe", []) if self.sourceless is None else ("sig", [list(self.sourceless)])
        return [kind, list(self.prompt), *sourceless, self.length, *self.reuse.key]

    def canvases(self, engine: Engine, stored: Callable[[Request], Any]) -> Canvases:
        return (yield Canvas(self.prompt, self.length, sourceless=self.sourceless, reuse=self.reuse))


class Gain(NamedTuple):
    """The prompt of a sentence's distractor, and the SIG of each slot of one of its all-mask canvases (nats). Of
    anchors their slots, and 1 for each slot that is one."""

    distractor: Sequence[int]
    sigs: tuple[float, ...]


def anchored(slots: Sequence[int], length: int) -> Gain:
    """Which slots of a canvas are anchors; those beyond its end are left out."""
    within = [slot for slot in slots if slot < length]
    return Gain(within, tuple(float(slot in within) for slot in range(length)))


def gains(own: ProbeResult, distracted: ProbeResult) -> tuple[float, ...]:
    """The SIG of each slot, from the readings of the same all-mask canvas behind the two prompts."""
    return tuple(other - one for one, other in zip(own.entropies, distracted.entropies, strict=True))


@dataclass(frozen=True)
class Score(Result):
    """Mean log-probability of a finished text's tokens and its first EOS (nats, six decimals)."""

    logprob: float


@dataclass(frozen=True)
class Finished:
    """The request for the score of a text in a canvas of ``length`` slots behind a prompt, the rest of them EOS.

    A text that is longer than the canvas is cut, as in the authors' code. Its pass is its own: no company.
    """

    result: ClassVar[type] = Score

    prompt: Sequence[int]
    text: Sequence[int]
    length: int
    mask_token: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """What is run, as a ledger counts it."""
        return {"passes": 1, "tokens": len(self.prompt) + self.length, "rows": self.length}

    @property
    def key(self) -> list[Any]:
        return ["finished", list(self.prompt), list(self.text), self.length]

    def canvases(self, engine: Engine, stored: Callable[[Request], Any]) -> Canvases:
        """None is left to the engine's passes."""
        yield from ()
        import torch

        from entropy_valley.model.attention import pack

        backbone = engine.backbone
        tokens = [*self.text, *[backbone.eos_id] * self.length][: self.length]
        first, scored = len(self.prompt) - int(backbone.shifted), min(len(self.text) + 1, self.length)
        with torch.inference_mode():
            packed = pack([[*self.prompt, *tokens]], backbone.device, [backbone.prefix(len(self.prompt))])
            states = backbone.model.hidden_states(packed)[first : first + self.length]
            head = engine.head
            chunks = [torch.cat([logits for _, logits in head.blocks(chunk)], 1) for chunk in head.chunks(states)]
            logits = torch.cat(chunks)[: self.length].double()
            if not self.mask_token:
                logits[:, backbone.mask_id] = -torch.inf
            ids = torch.tensor(tokens, device=logits.device)
            logprobs = logits.log_softmax(-1).gather(1, ids[:, None])[:scored, 0].tolist()
        return Score(round(math.fsum(logprobs) / scored, 6))


# --- The runner: work on many sentences at once, and the store.


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
                self._compute(computation, result)
                yield from self._go_on(engine)

    def _go_on(self, engine: Engine | None = None) -> Iterator[tuple[Any, Any]]:
        """Go on with all work as far as results are there, and start what must be computed, if there is an engine."""
        while True:
            if self._ready:
                yield from self._resume(self._ready.popleft())
            elif self._new and engine:
                computation = self._new.popleft()
                computation.canvases = computation.request.canvases(engine, self._stored)
                self._compute(computation, None)
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
        piece.results, piece.missing = [None] * len(requests), len(requests)
        self._ledger.count(requested=len(requests))
        for place, request in enumerate(requests):
            if (stored := self._stored(request)) is not None:
                self._answer(piece, place, stored)
                continue
            key = self._memo.key(request) if self._memo else ""
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
        if not requests:
            self._ready.append(piece)

    def _stored(self, request: Request) -> Any | None:
        return self._memo.get(request) if self._memo else None

    def _compute(self, computation: _Computation, result: ProbeResult | Decoded | None) -> None:
        """Put the next canvas of a computation into the queue; after the last one store its result and hand it out."""
        try:
            self._queue.put(computation, computation.canvases.send(result))
            return
        except StopIteration as done:
            final = done.value
        self._ledger.count(**getattr(computation.request, "counts", {}))
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


@dataclass
class Ledger:
    """Counts of one job. Unlike the rows' counts they depend on what the store held, so no declared output has them.

    ``requested`` and ``computed`` count results: canvases, sentences of a beam search, or a length head. ``passes``,
    ``tokens`` and ``rows`` are forward passes, tokens in them, and rows of the LM head; ``padded`` are tokens of dummy
    sequences, and ``unused`` those of a lookahead's wrong guesses, which are in none of these; ``foreseen`` are its
    right ones, each of which saves a canvas a pass; ``loads`` are models loaded.
    """

    requested: int = 0
    computed: int = 0
    passes: int = 0
    tokens: int = 0
    rows: int = 0
    padded: int = 0
    unused: int = 0
    foreseen: int = 0
    loads: int = 0

    def count(self, **counts: int) -> None:
        """Add to the counts by name."""
        for name, value in counts.items():
            setattr(self, name, getattr(self, name) + value)

    def text(self) -> str:
        """One line for the log."""
        padding = f" and {self.padded} of padding" if self.padded else ""
        guesses = f", {self.unused} of wrong guesses" if self.unused else ""
        return (
            f"{self.requested} results asked for, {self.requested - self.computed} shared, {self.computed} computed "
            f"in {self.passes} passes of {self.tokens} tokens{padding}{guesses}, {self.rows} head rows; "
            f"models loaded: {self.loads}"
        )
