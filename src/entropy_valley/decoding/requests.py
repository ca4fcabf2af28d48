"""What is asked of the model about one canvas, to read it, to denoise it, or to score a finished text; and how it is
answered, for many sentences at once.

A request yields the canvases that the engine is to run for it. :class:`Denoising` makes those that fill a canvas, by a
reveal order or a variable-length decoder. :class:`Runner` answers requests from the store, else by the engine in passes
that sentences share. The work on one sentence is a generator: it yields the requests whose results it needs next, is
sent these results, and returns what it makes of them::

    def work(prompt):
        readings = yield [Probe(prompt, length) for length in (9, 12)]
        return min(map(mean_entropy, readings))
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from entropy_valley import files, plugins
from entropy_valley.decoding.canvas import (
    NO_REUSE,
    VALUES,
    CachePolicy,
    Canvas,
    Decoded,
    FinishedText,
    Ids,
    Ledger,
    ProbeResult,
    Queue,
    Reuse,
)
from entropy_valley.decoding.orders import ORDERS, Order, floors, reveal_counts, sourceless_steps
from entropy_valley.decoding.variable_length import VARIABLE_LENGTH, Guess, Revealed, VariableLengthDecoder, advanced
from entropy_valley.errors import InputError
from entropy_valley.progress import progress
from entropy_valley.revisions import DECODING, SOURCE_GUIDED
from entropy_valley.settings import MOST_STEPS, JsonObject, Section

if TYPE_CHECKING:
    from entropy_valley.decoding.engine import Engine
    from entropy_valley.model.load import Backbone
    from entropy_valley.store import Store

# It is sent the Decoded of a canvas with counts, the ProbeResult of another, and the log-probabilities of a text.
Canvases = Generator[Canvas | FinishedText, Any, Any]

Stored = Callable[["Request"], Any]  # another request's result where the store has it, else None


# --- To read a canvas.


@dataclass(frozen=True)
class Probe:
    """The request for the reading of ``length`` masks behind a prompt; with ``sourceless`` it has the SIG."""

    result = ProbeResult

    prompt: Ids
    length: int
    sourceless: Ids | None = None
    reuse: Reuse = NO_REUSE

    @property
    def key(self) -> list[Any]:
        kind, sourceless = ("probe", []) if self.sourceless is None else ("sig", [list(self.sourceless)])
        return [kind, list(self.prompt), *sourceless, self.length, *self.reuse.key]

    def canvases(self, backbone: Backbone, stored: Stored) -> Canvases:
        return (yield Canvas(self.prompt, self.length, sourceless=self.sourceless, reuse=self.reuse))


def gains(source: ProbeResult, distractor: ProbeResult) -> tuple[float, ...]:
    """The SIG of each slot, from the readings of the same all-mask canvas behind the two prompts."""
    pairs = zip(source.entropies, distractor.entropies, strict=True)
    return tuple(behind_distractor - behind_source for behind_source, behind_distractor in pairs)


@dataclass(frozen=True)
class Draft:
    """The request for the reading of ``length`` masks behind a prompt after ``steps`` of ``steps`` + 1 steps.

    A step reveals the slots of the lowest entropy, by the schedule :func:`floors`. The reading has all slots: of a
    revealed one what its own step read, of the others what the last pass reads.
    """

    result = ProbeResult

    prompt: Ids
    length: int
    steps: int

    @property
    def key(self) -> list[Any]:
        return ["draft", list(self.prompt), self.length, self.steps]

    def canvases(self, backbone: Backbone, stored: Stored) -> Canvases:
        mask = backbone.mask_id
        tokens, seen = [mask] * self.length, [(mask, 0.0, 0.0, 0.0)] * self.length
        reading = stored(Probe(self.prompt, self.length))
        for count in [*floors(self.length, self.steps + 1)[: self.steps], 0]:
            hidden = [slot for slot, token in enumerate(tokens) if token == mask]
            if reading is None:
                revealed = list(tokens) if len(hidden) < self.length else None
                reading = yield Canvas(self.prompt, self.length, tokens=revealed)
            columns = (getattr(reading, name) for name in VALUES)
            for slot, values in zip(hidden, zip(*columns, strict=True), strict=True):
                seen[slot] = values
            for slot in sorted(hidden, key=lambda slot: (seen[slot][1], slot))[:count]:
                tokens[slot] = seen[slot][0]
            reading = None if count else reading  # nothing revealed: the next pass would read the same
        return ProbeResult(*zip(*seen, strict=True))


# --- To score a finished text.


@dataclass(frozen=True)
class Score:
    """Mean log-probability of a finished text's tokens and its first EOS (nats, six decimals)."""

    logprob: float


@dataclass(frozen=True)
class Finished:
    """The request for the score of a text in a canvas of ``length`` slots behind a prompt, the rest of them EOS.

    A text that is longer than the canvas is cut, as in the authors' code.
    """

    result = Score

    prompt: Ids
    text: Ids
    length: int

    @property
    def key(self) -> list[Any]:
        return ["finished", list(self.prompt), list(self.text), self.length]

    def canvases(self, backbone: Backbone, stored: Stored) -> Canvases:
        tokens = [*self.text, *[backbone.eos_id] * self.length][: self.length]
        logprobs = yield FinishedText(self.prompt, tokens)
        scored = min(len(self.text) + 1, self.length)
        return Score(round(math.fsum(logprobs[:scored]) / scored, 6))


# --- To fill a canvas.


@dataclass(frozen=True)
class FixedLength:
    """A canvas to be revealed in its schedule by the order of that name and settings; the engine runs the order.

    One whose prompt is renewed begins with a pass over its prompt, be the reading of its masks known or not.
    """

    result = Decoded

    canvas: Canvas
    order: str
    settings: JsonObject
    distractor: Ids | None = None

    @property
    def key(self) -> list[Any]:
        """The step budget T is not in it, unless the order looks at it: for L ≤ T all T reveal one slot in each of L
        steps, and are one decode. A SIG against a distractor is known by that prompt, and anchors by their slots."""
        canvas = self.canvas
        compared: list[Any] | None = None if canvas.sourceless is None else list(canvas.sourceless)
        known = canvas.anchors if self.distractor is None else self.distractor
        if known is not None:
            compared = [SOURCE_GUIDED, list(known), canvas.budget]
        denoised = [list(canvas.prompt), compared, canvas.length, list(canvas.counts), *canvas.reuse.key]
        return ["decode", *denoised, self.order, dict(self.settings)]

    def canvases(self, backbone: Backbone, stored: Stored) -> Canvases:
        if self.canvas.reuse.refresh:
            return (yield self.canvas)
        start = self.canvas.start or stored(Probe(self.canvas.prompt, self.canvas.length))
        return (yield dataclasses.replace(self.canvas, start=start))


@dataclass(frozen=True)
class DecodedVariableLength(Decoded):
    """A decoded canvas of its final length; ``slots`` summed over all its passes, ``rows`` the masked ones of these."""

    slots: int
    rows: int


@dataclass(frozen=True)
class VariableLength:
    """A canvas of masks that may grow to ``most`` slots, to be denoised by the decoder of that name and settings."""

    result = DecodedVariableLength

    decoder: VariableLengthDecoder
    canvas: Canvas
    most: int
    name: str = ""
    settings: JsonObject = field(default_factory=dict)

    @property
    def key(self) -> list[Any]:
        return ["filling", list(self.canvas.prompt), self.canvas.length, self.name, dict(self.settings)]

    def canvases(self, backbone: Backbone, stored: Stored) -> Canvases:
        prompt, length = self.canvas.prompt, self.canvas.length
        slots = self.decoder.first(length, backbone.eos_id, self.most)
        passes = run = rows = 0
        reading = None
        if self.decoder.starts_masked:
            reading = self.canvas.start or stored(Probe(prompt, length))
        while None in slots:
            if reading is None:
                tokens = [backbone.mask_id if slot is None else slot.token for slot in slots]
                reading = yield Canvas(prompt, len(slots), tokens=tokens if any(slots) else None)
            run, rows = run + len(slots), rows + slots.count(None)
            guesses = map(Guess, reading.tokens, reading.logprobs, reading.eos_logprobs)
            seen: list[Revealed | Guess] = []
            for slot in slots:
                if slot is None:
                    seen.append(next(guesses))
                    continue
                if slot.token == backbone.mask_id:  # it was revealed as a mask: it is read again, and stays as it is
                    next(guesses)
                seen.append(slot)
            about, reading = f"sentence {self.canvas.sentence!r}, pass {passes}", None
            slots = advanced(self.decoder, seen, backbone.eos_id, passes, self.most, about)
            passes += 1
        revealed = [slot for slot in slots if slot is not None]
        tokens = [slot.token for slot in revealed]
        text = tokens.index(backbone.eos_id) if backbone.eos_id in tokens else len(tokens)
        mean = round(math.fsum(slot.logprob for slot in revealed[:text]) / text, 4) if text else None
        return DecodedVariableLength(tokens, text, mean, passes, run, rows)


# What is asked of the model about one canvas. ``result`` is the class of the answer, ``key`` what that is of in the
# store, its kind first; ``canvases`` yields what the engine is to run, one canvas after the other, and returns the
# answer.
Request = Probe | Draft | Finished | FixedLength | VariableLength

Work = Generator[Sequence[Request], list[Any], Any]  # on one sentence


# What the config names where it asks for an order.
KNOWN: dict[str, type[Section]] = {**ORDERS, **VARIABLE_LENGTH}


def make_denoiser(name: str, settings: JsonObject | None = None) -> Order | VariableLengthDecoder:
    """The reveal order or variable-length decoder that ``name`` says, built with ``settings`` as keyword arguments;
    raises InputError where it is neither."""
    denoiser = plugins.make("reveal order", KNOWN, name, settings or {})
    if not isinstance(denoiser, Order | VariableLengthDecoder):
        problem = "inherits from neither Order nor VariableLengthDecoder"
        raise InputError(f"reveal order {plugins.without_code(name)!r}", problem, plugins.GUIDE)
    return denoiser


def reveals_masks(spec: JsonObject) -> bool:
    """Whether the mask token is in all distributions of a job, so that it may be revealed (`decoding.mask_token`)."""
    return spec.get("mask_token", "never") != "never"


@dataclass(frozen=True)
class Denoising:
    """A reveal order with the step budget T and the schedule rule, or a variable-length decoder, which takes neither.

    ``name`` and ``settings`` are as the config has them: the store knows results by them. ``mask_token``: whether that
    may be revealed.
    """

    name: str
    settings: JsonObject = field(default_factory=dict)
    order: Order | None = None
    steps: int = 0
    schedule: str = ""
    variable_length: VariableLengthDecoder | None = None
    mask_token: bool = False

    @classmethod
    def named(
        cls, name: str, steps: int, schedule: str, settings: JsonObject | None = None, mask_token: bool = False
    ) -> Self:
        """What ``name`` says, one of ours or ``module:Class``; raises InputError where that is neither of the two, for
        steps that are no such number, and for an unknown schedule."""
        if not isinstance(steps, Integral) or isinstance(steps, bool) or not 1 <= steps <= MOST_STEPS:
            problem = f"{steps!r}, not a number from 1 to {MOST_STEPS:,}"
            raise InputError("steps", problem, "Give the step budget T, such as 32.")
        reveal_counts(1, steps, schedule)  # raises for an unknown one
        denoiser = make_denoiser(name, settings)
        if isinstance(denoiser, VariableLengthDecoder):
            return cls(name, settings or {}, variable_length=denoiser, mask_token=mask_token)
        return cls(name, settings or {}, denoiser, steps, schedule, mask_token=mask_token)

    @classmethod
    def of(cls, spec: JsonObject) -> Self:
        """What a decoding job's spec says."""
        return cls.named(spec["order"], spec["steps"], spec["schedule"], spec["order_settings"], reveals_masks(spec))

    def counts(self, length: int) -> list[int]:
        """Slots revealed at each step that reveals any; the others change nothing and are not run."""
        return [count for count in reveal_counts(length, self.steps, self.schedule) if count]

    def masked(self, length: int, passes: int) -> list[int]:
        """The slots that are still masked in each of the first ``passes`` passes over a canvas."""
        revealed = itertools.accumulate(self.counts(length)[: passes - 1], initial=0)
        return [length - before for before in revealed]

    def request(
        self, canvas: Canvas, room: int, distractor: Ids | None = None, cache: CachePolicy | None = None
    ) -> FixedLength | VariableLength:
        """What is asked of the engine for a canvas of masks, whose prompt leaves ``room`` slots of the context.

        The ``canvas`` has all that is known of its sentence. ``distractor`` is the prompt that its SIGs were compared
        with. ``cache``: of prompts, which a variable-length decoder does not use.
        """
        if decoder := self.variable_length:
            return VariableLength(decoder, canvas, min(decoder.cap, room), self.name, self.settings)
        counts, reuse = self.counts(canvas.length), self.reuse(canvas.length, cache)
        asked = dataclasses.replace(
            canvas,
            counts=counts,
            start=None if reuse.refresh else canvas.start,
            sourceless=canvas.sourceless if sourceless_steps(self.order, len(counts)) else None,
            budget=self.steps if self.looks_at_distractor and self.order and self.order.in_time else 0,
            reuse=reuse,
        )
        return FixedLength(asked, self.name, self.settings, distractor)

    def reuse(self, length: int, cache: CachePolicy | None) -> Reuse:
        """Which passes over a canvas of so many slots compute its prompt."""
        return cache.of_canvas(len(self.counts(length)) + self.mask_token) if cache else NO_REUSE

    @functools.cached_property
    def looks_at_distractor(self) -> bool:
        """Whether its order wants the SIG against a distractor."""
        return self.order is not None and self.order.looks_at_distractor

    @property
    def calls(self) -> int:
        """Passes of the method as the paper counts them: T, and two for a SIG against a distractor, or one for each
        step that looks at a stepwise SIG."""
        return self.steps + 2 * self.looks_at_distractor + sourceless_steps(self.order, self.steps)

    @property
    def label(self) -> str:
        """Name and settings in one word, for signatures."""
        shown = {"sig": "distractor", **self.settings} if self.looks_at_distractor else self.settings
        settings = ",".join(f"{key}={value}" for key, value in sorted(shown.items()))
        return f"{self.name}({settings})" if settings else self.name


# --- To answer requests.


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
