"""Canvases: what the engine runs, what it says of them, which of them wait, and what is counted.

A canvas is some masked slots behind a prompt. It is denoised, and the result is a :class:`Decoded`; or it is only read,
and the result is a :class:`ProbeResult`.

A prompt need not be computed in every pass. Under prefix attention this is exact: the rows of a prompt never see a
canvas, so they are computed once for all passes over the sentence, whatever a config asks for. Else it is an
approximation that a config may ask for, the prompt cache. The probes of a length method are numbered from 0 in the
order in which it asks for them, and so are the steps of a canvas that reveal anything. In those whose number is a
multiple of ``refresh`` the rows of the prompt are computed, as in all passes of the exact engine; in others the slots
attend to the keys and values that the prompt had in the last such pass.
"""

import dataclasses
import functools
import heapq
import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

SHORTEST = 2  # slots: one of content and the EOS's

VALUES = ("tokens", "entropies", "logprobs", "eos_logprobs")  # what every reading has, in the order of its columns

Ids = Sequence[int]  # of tokens
PromptIds = tuple[int, ...]

SharedSource = tuple[PromptIds, int]  # a sequence that computes the rows of its prompt: this and so many masked slots

# --- What the engine says of a canvas. In the store each result is JSON of its fields.


@dataclass(frozen=True)
class ProbeResult:
    """One value per slot, in slot order: most probable token, entropy of its distribution, log-probabilities of that
    token and of the EOS; and its SIG (see :mod:`entropy_valley.decoding.head`), where the canvas was read without the
    source too.

    Nats; the mask token has no probability. JSON keeps every bit of a float, so a decode that starts from a stored
    reading is the decode that computes it.
    """

    tokens: Ids
    entropies: Sequence[float]
    logprobs: Sequence[float]
    eos_logprobs: Sequence[float]
    sigs: Sequence[float] = ()


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


Answer = tuple[Any, ProbeResult | Decoded]  # behind the name of its canvas

# --- Which passes compute the prompt of a canvas.


@dataclass(frozen=True)
class Reuse:
    """Which passes compute the prompt of one canvas. With nothing set all of its own do, which is exact.

    With ``refresh`` each of its passes whose number (from 0) is a multiple of it; with ``beside`` one over an all-mask
    canvas of that many slots behind the same prompt, with 0 one over the prompt alone. ``is_source``: canvases
    ``beside`` this one may come when it is done.
    """

    refresh: int | None = None
    beside: int | None = None
    is_source: bool = False

    @property
    def key(self) -> list[Any]:
        """What the store's key of a result says of it: nothing where it is exact."""
        refresh = [] if self.refresh is None else ["refresh", self.refresh]
        return refresh + ([] if self.beside is None else ["beside", self.beside])

    def attends(self, step: int, is_kept: bool) -> bool:
        """Whether the ``step``-th pass takes the rows of the prompt from an earlier one of the canvas."""
        return self.refresh is not None and is_kept and step % self.refresh > 0


NO_REUSE, OF_PROMPT = Reuse(), Reuse(beside=0)

KEY, NEVER, PART = "prompt_cache", "never", "prompt cache"  # PART: of a decoder's name in signatures


@dataclass(frozen=True)
class CachePolicy:
    """What a job may ask for: the prompt is computed in every ``refresh``-th pass alone."""

    refresh: int

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self | None:
        """What a job's spec says, None of an exact one; for ``never`` more than there are passes."""
        setting = spec.get(KEY, 1)
        return None if setting == 1 else cls(sys.maxsize if setting == NEVER else setting)

    @property
    def name(self) -> str:
        """What a decoder's name says of it."""
        return f"{PART}, {NEVER} renewed" if self.refresh == sys.maxsize else f"{PART} {self.refresh}"

    def of_probe(self, lengths: Sequence[int]) -> Reuse:
        """For the last of the ``lengths`` that a sentence's probes have, different ones in the order of the probes."""
        number = len(lengths) - 1
        first = number // self.refresh * self.refresh
        return Reuse(is_source=True) if first == number else Reuse(beside=lengths[first])

    def of_canvas(self, passes: int) -> Reuse:
        """For a canvas of so many passes; one pass is exact."""
        return NO_REUSE if passes == 1 else Reuse(min(self.refresh, passes))

    def saved(self, steps: Sequence[int]) -> int:
        """How many of these steps take the prompt from an earlier one of them."""
        return sum(step % self.refresh > 0 for step in steps[1:])


def footnote(decoder: str) -> str | None:
    """What a decoder of that name in a signature approximates; None for an exact one."""
    for part in decoder.split("|"):
        if part.startswith(PART):
            every = part.removeprefix(PART).strip()
            when = f"renewed every {every} passes" if every.isdigit() else "those of the first pass"
            return f"Approximate, {part}: the prompt's keys and values are {when} over a sentence."
    return None


# --- What the engine runs.


@dataclass(frozen=True)
class Canvas:
    """``length`` masked slots behind a prompt, and how many to reveal at each step that reveals any.

    Without ``counts`` it is only to be read. ``start`` is the known reading of the all-mask canvas: the pass of the
    first step is then not run again, unless the order looks at the SIG there. ``sourceless`` is the prompt with an
    empty source: for orders that look at the SIG, or for a reading that is to have it. ``tokens``: the slots of a
    canvas to be read that is revealed in part, the mask id in the others. ``sigs``: the SIG of each slot, where an
    order knows it before the first step. ``anchors``: the slots that a gold alignment ties to the source, for an order
    that wants them. ``budget``: the step budget T, where an order looks at it. ``sentence`` is its name in errors.
    ``reuse`` says which passes compute the prompt.
    """

    prompt: Ids
    length: int
    counts: Sequence[int] = ()
    start: ProbeResult | None = None
    sourceless: Ids | None = None
    tokens: Ids | None = None
    sigs: Sequence[float] = ()
    anchors: Sequence[int] | None = None
    budget: int = 0
    sentence: object = None
    reuse: Reuse = NO_REUSE

    @functools.cached_property
    def prompts(self) -> list[PromptIds]:
        """Its prompt, and that without the source, if it has one."""
        return [tuple(prompt) for prompt in (self.prompt, self.sourceless) if prompt is not None]

    @functools.cached_property
    def cost(self) -> int:
        """The most tokens that one pass over it takes."""
        return sum(len(prompt) + self.length for prompt in self.prompts)

    @functools.cached_property
    def sources(self) -> list[SharedSource]:
        """The sequences that compute the rows of its prompts; none if its own passes do."""
        return [] if self.reuse.beside is None else [(prompt, self.reuse.beside) for prompt in self.prompts]


class FinishedText(NamedTuple):
    """A prompt and a canvas whose slots are all known."""

    prompt: Ids
    tokens: Ids


class Queue:
    """Canvases that wait for a place in a pass, each by a name of its own; more may be put while the engine runs.

    First come those that are on their way (a known first step, or revealed in part), then the longest, which need most
    passes: they are not left for the end, where passes would be nearly empty. Canvases whose passes share the rows of a
    prompt come one after the other; where prompts are ``shared``, so do all canvases of a prompt.
    """

    def __init__(self, canvases: Iterable[tuple[Any, Canvas]] = (), shared: bool = False) -> None:
        self._shared = shared
        self.heap: list[tuple[bool, int, Sequence[int], int, Any, Canvas]] = []  # its first has its turn
        self._arrivals = itertools.count()
        self.sources: Counter[SharedSource] = Counter()  # that canvases here attend to
        for name, canvas in canvases:
            self.put(name, canvas)

    def put(self, name: Any, canvas: Canvas) -> None:
        """Let a canvas wait; its result will come under ``name``."""
        if self._shared:  # exactly, whatever is asked for
            canvas = dataclasses.replace(canvas, reuse=OF_PROMPT)
        self.sources.update(canvas.sources)
        slots = canvas.length if canvas.reuse.beside is None else canvas.reuse.beside
        # The prompt's tokens are in the key so that equal ones stand together; arrivals decide between equal canvases.
        new, prompt = not (canvas.start or canvas.tokens), canvas.prompts[0]
        heapq.heappush(self.heap, (new, -len(prompt) - slots, prompt, next(self._arrivals), name, canvas))

    def take(self) -> tuple[Any, Canvas]:
        """The canvas whose turn it is, by its name; it does not wait any longer."""
        name, canvas = heapq.heappop(self.heap)[-2:]
        self.sources.subtract(canvas.sources)  # counts of 0 stay: nobody looks for their keys
        return name, canvas


class Ledger(Counter[str]):
    """Counts of one job. Unlike the rows' counts they depend on what the store held, so no declared output has them.

    ``requested`` and ``computed`` count results: canvases, sentences of a beam search, or a length head. ``passes``,
    ``tokens`` and ``rows`` are forward passes, tokens in them, and rows of the LM head; ``padded`` are tokens of dummy
    sequences, and ``unused`` those of a lookahead's wrong guesses, which are in none of these; ``foreseen`` are its
    right ones, each of which saves a canvas a pass; ``loads`` are models loaded.
    """

    def text(self) -> str:
        """One line for the log."""
        shared = self["requested"] - self["computed"]
        padding = f" and {self['padded']} of padding" if self["padded"] else ""
        guesses = f", {self['unused']} of wrong guesses" if self["unused"] else ""
        return (
            f"{self['requested']} results asked for, {shared} shared, {self['computed']} computed in {self['passes']} "
            f"passes of {self['tokens']} tokens{padding}{guesses}, {self['rows']} head rows; models loaded: "
            f"{self['loads']}"
        )
