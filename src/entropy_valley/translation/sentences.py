"""From sentences to translations: the one way for all who decode.

:class:`Sentences` are some sentences in their prompts. For each there is work that chooses a canvas and denoises it,
which a :class:`.Runner` does: for the workflow's jobs, the library, the latency benchmark and ``benchmarks/``.
"""

import dataclasses
import functools
import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from entropy_valley import files
from entropy_valley.decoding.canvas import NO_REUSE, SHORTEST, CachePolicy, Canvas, Decoded, Ids, ProbeResult, Reuse
from entropy_valley.decoding.requests import Denoising, Draft, Finished, Probe, Work, gains
from entropy_valley.errors import InputError, SentenceError
from entropy_valley.lengths.base import Choice, LengthMethod, Sentence, canvas_row, choosing, declared
from entropy_valley.model.prompt import Prompt

Row = dict[str, Any]  # the canvas of a sentence, as its row of translations has it


@dataclass(frozen=True)
class Sentences:
    """Rows with an ``id`` and a ``source``, in their ``prompt``; of pairs they have a ``target`` too, and where a gold
    alignment is given, ``anchors``. A sentence is named by its place among them.

    ``context`` is the most tokens of a sequence; what exceeds it is a SentenceError before any pass over it. ``file``
    is where errors say that the rows stand. With a ``cache`` the probes of length methods and the steps of canvases are
    approximate. ``turn_end`` and ``mask`` are the ids of such tokens, if there are any.
    """

    file: Any
    rows: Sequence[Mapping[str, Any]]
    prompt: Prompt
    context: int
    cache: CachePolicy | None = None
    turn_end: int | None = None
    mask: int | None = None

    def at(self, places: Iterable[int]) -> Self:
        """Those at some places."""
        return dataclasses.replace(self, rows=[self.rows[place] for place in places])

    def first(self, count: int | None) -> Self:
        """So many of them, from the first on; None: all."""
        return dataclasses.replace(self, rows=self.rows[:count])

    @property
    def data_digest(self) -> str:
        return files.file_digest(Path(self.file))

    # What their prompts are, and what fits behind them.

    @functools.cached_property
    def prompts(self) -> list[list[int]]:
        """The tokens of each prompt, which are read at the first use."""
        return [self.prompt.encode(row["source"]) for row in self.rows]

    @functools.cached_property
    def sourceless(self) -> list[int]:
        """The prompt of an empty source."""
        return self.prompt.encode("")

    @functools.cached_property
    def distractors(self) -> list[int]:
        """For each place that of the sentence whose prompt a SIG compares with it."""
        return distractors([row["source"] for row in self.rows])

    def tokens(self, side: str) -> list[int]:
        """How many tokens each ``source`` or ``target`` has."""
        return [len(self.prompt.tokens(row[side])) for row in self.rows]

    def anchors(self, place: int) -> list[int]:
        """The slots of the reference that a gold alignment ties to the source; raise InputError where none is given."""
        row = self.rows[place]
        if row.get("anchors") is None:
            problem = f"sentence {row['id']!r} has no `anchors`, which the order oracle_anchor reveals first"
            raise InputError(self.file, problem, "Take a test set that has an alignment, or another order.")
        return self.prompt.slots_of(row["target"], row["anchors"])

    def seen_by(self, method: LengthMethod, predicted: Iterable[Mapping[int, float] | None] = ()) -> list[Sentence]:
        """What a length method may know of each: of the target nothing, unless it says that it sees it.

        ``predicted`` is what a length head says of each, for a method that uses it. Each has the slots that the context
        leaves for it, at least the shortest canvas's: :meth:`check` says what is too long.
        """
        seen, tokens = [], self.prompt.tokens
        for row, prompt, lengths in itertools.zip_longest(self.rows, self.prompts, predicted):
            reference = len(tokens(row["target"])) if method.sees_reference else None
            room = max(SHORTEST, self.context - len(prompt))
            seen.append(Sentence(len(tokens(row["source"])), reference, lengths, room, row["source"]))
        return seen

    def fits(self, place: int, slots: int) -> bool:
        """Whether a canvas of so many slots behind the prompt at ``place`` is within the context."""
        return len(self.prompts[place]) + slots <= self.context

    def check(self, place: int, slots: int) -> None:
        """Raise SentenceError if a canvas of so many slots behind the prompt at ``place`` exceeds the context."""
        if not self.fits(place, slots):
            self.room(place)  # of a prompt that is too long by itself
            prompt = len(self.prompts[place])
            raise SentenceError(
                self.file,
                f"sentence {self.rows[place]['id']!r}: prompt {prompt} + canvas {slots} = {prompt + slots} tokens, "
                f"but the backbone's context is {self.context}",
                "Split or drop the sentence, or choose a shorter canvas.",
            )

    def room(self, place: int) -> int:
        """The tokens of the context behind the prompt at ``place``; raise SentenceError where there are none."""
        prompt = len(self.prompts[place])
        if prompt >= self.context:  # of an autoregressive backbone, too, which has no canvas
            raise SentenceError(
                self.file,
                f"sentence {self.rows[place]['id']!r}: prompt of {prompt} tokens, but the backbone's context is "
                f"{self.context} and must hold the translation too",
                "Split or drop the sentence.",
            )
        return self.context - prompt

    # The work on each: its canvas is read, chosen and denoised.

    def probe(self, place: int, slots: int, sourceless: Ids | None = None, reuse: Reuse = NO_REUSE) -> Probe:
        """The request for the reading of an all-mask canvas behind the prompt at ``place``."""
        self.check(place, slots)
        return Probe(self.prompts[place], slots, sourceless, reuse)

    def translating(self, method: LengthMethod, place: int, sentence: Sentence, denoising: Denoising) -> Work:
        """The work that returns a canvas row and what is decoded for it, in passes that it shares with others."""
        row, readings = yield from self.choosing(method, place, sentence)
        return row, (yield from self.denoising(place, row, denoising, readings))

    def choosing(self, method: LengthMethod, place: int, sentence: Sentence, slots: int | None = None) -> Work:
        """The work of one sentence up to its :func:`~entropy_valley.lengths.base.canvas_row`, and the readings of its
        all-mask canvases by length. With ``slots`` its canvas has these, and the method is not asked.

        The row has the number of probes that did not compute the prompt as ``cached``, if there are any.
        """
        if slots is not None:
            self.check(place, slots)
            return canvas_row(Choice(slots), sentence, {}), {}
        steps = declared(method, "draft_steps")
        probed: list[int] = []

        def probe(length: int) -> Probe | Draft:
            probed.append(length)
            if steps:
                self.check(place, length)
                return Draft(self.prompts[place], length, steps)
            return self.probe(place, length, reuse=self.cache.of_probe(probed) if self.cache else NO_REUSE)

        row, readings = yield from choosing(method, sentence, probe, self.rows[place]["id"])
        self.check(place, row["length"])
        if steps:
            return row, {}
        if self.cache and (cached := self.cache.saved(range(len(probed)))):
            row = {**row, "cached": cached}
        return row, readings

    def denoising(self, place: int, row: Row, denoising: Denoising, readings: Mapping[int, ProbeResult]) -> Work:
        """The work on one sentence's canvas row: what is decoded for it, by the number of masks at the start.

        ``readings`` are known ones of its all-mask canvases; with a ``cache`` they are not exact, and not used.
        """
        lengths = contenders(row)
        for length in lengths:
            self.check(place, length)
        prompt, room, name = self.prompts[place], self.room(place), self.rows[place]["id"]
        known = {} if self.cache else dict(readings)
        if denoising.looks_at_distractor:
            other = self.distractors[place]
            canvases = [(place, length) for length in lengths if length not in known]
            canvases += [(other, length) for length in lengths]
            exact = yield [self.probe(*canvas) for canvas in canvases]
            compared = dict(zip(canvases, exact, strict=True))
        requests = []
        for length in lengths:
            distractor = None
            canvas = Canvas(prompt, length, (), known.get(length), self.sourceless, sentence=name)
            # What the order looks at.
            if denoising.looks_at_distractor:
                distractor, start = self.prompts[other], known.get(length) or compared[place, length]
                canvas = dataclasses.replace(canvas, start=start, sigs=gains(start, compared[other, length]))
            elif denoising.order and denoising.order.anchored:
                anchors = [slot for slot in self.anchors(place) if slot < length]
                canvas = dataclasses.replace(canvas, anchors=anchors)
            requests.append(denoising.request(canvas, room, distractor, self.cache))
        decoded = yield requests
        if row.get("rescoring") and len(lengths) > 1:
            # The log-probability of the finished text takes the place of that at reveal time.
            finished = []
            for filled in decoded:
                written = self.prompt.tokens(self.prompt.text(self.written(filled)))
                finished.append(Finished(prompt, written, len(filled.tokens)))
            pairs = zip(decoded, (yield finished), strict=True)
            decoded = [dataclasses.replace(filled, logprob=score.logprob) for filled, score in pairs]
        return dict(zip(lengths, decoded, strict=True))

    def written(self, decoded: Decoded) -> list[int]:
        """The ids of a decoded canvas that are its text: of those before the first EOS the ones before the end of a
        turn, but for slots that were revealed as a mask."""
        before = itertools.takewhile(lambda token: token != self.turn_end, decoded.tokens[: decoded.text])
        return [token for token in before if token != self.mask]


def caught(work: Work, answer: Callable[[SentenceError], Any]) -> Work:
    """The same work; where it fails for its sentence alone, as one beyond the context, its result is the ``answer``."""
    try:
        return (yield from work)
    except SentenceError as error:
        return answer(error)


def distractors(sources: Sequence[str]) -> list[int]:
    """The place of each source's distractor: one of its length, drawn by its own place; any other source where none has
    that length; itself where all are the same.

    A text without spaces is one word.
    """
    words = np.array([len(source.split()) for source in sources])
    _, text = np.unique(np.array(sources), return_inverse=True)
    places = []
    for place, count in enumerate(words.tolist()):
        another = text != text[place]
        near = another & (words >= 4 * count // 5) & (words <= 6 * count // 5)
        candidates = np.flatnonzero(near if near.any() else another).tolist()
        places.append(random.Random(place).choice(candidates) if candidates else place)
    return places


def contenders(canvas: Mapping[str, Any]) -> list[int]:
    """The lengths that are decoded for a canvas row: its own, unless it names several."""
    return canvas.get("contenders") or [canvas["length"]]


def winner(decoded: Mapping[int, Decoded]) -> Decoded:
    """Of canvases decoded from so many masks the one of the largest mean log-probability, at reveal time or rescored.

    The shorter one on a tie in the decimals that it has; an empty text, which has no log-probability, comes last.
    """
    return min(decoded.items(), key=lambda item: (item[1].logprob is None, -(item[1].logprob or 0.0), item[0]))[1]
