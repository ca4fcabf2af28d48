"""From prompts to translations: the one way for all who decode.

:class:`Inputs` are the prompts of some sentences. :class:`Pipeline` chooses a canvas for each and denoises it: for the
workflow's jobs, the library, the latency benchmark and ``benchmarks/``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from entropy_valley.decoding.canvas import NO_CACHE, SHORTEST, CachePolicy, Canvas, Decoded, ProbeResult
from entropy_valley.decoding.requests import Denoising, Draft, Finished, Probe, Request, gains
from entropy_valley.decoding.runner import Runner, Work
from entropy_valley.errors import InputError, SentenceError
from entropy_valley.lengths.base import Choice, LengthMethod, Sentence, canvas_row, choosing, declared, probing
from entropy_valley.model.prompt import Prompt

if TYPE_CHECKING:
    from entropy_valley.decoding.engine import Engine

Row = dict[str, Any]  # the canvas of a sentence, as its row of translations has it

# --- The prompts of some sentences, and the texts of their translations.


@dataclass(frozen=True)
class Inputs:
    """The prompt tokens of each sentence, those of an empty source, and the context: the most tokens of a sequence.

    ``file`` and ``names`` tell an error which sentence it is about; ``sources`` are the texts, of which distractors are
    drawn; ``aligned`` has the slots of each reference that a gold alignment ties to its source, None where none is
    given; ``texts`` knows the text of a translation, where finished texts are scored.
    """

    file: object
    names: Sequence[object]
    prompts: Sequence[Sequence[int]]
    sourceless: Sequence[int]
    context: int
    sources: Sequence[str] = ()
    aligned: Sequence[Sequence[int] | None] = ()
    texts: Texts | None = None

    @classmethod
    def of(
        cls,
        file: object,
        names: Sequence[object],
        sources: Sequence[str],
        texts: Texts,
        context: int,
        aligned: Sequence[Sequence[int] | None] = (),
    ) -> Self:
        """The sources in the prompt of ``texts``."""
        encode = texts.prompt.encode
        return cls(file, names, list(map(encode, sources)), encode(""), context, sources, aligned, texts)

    @functools.cached_property
    def distractors(self) -> list[int]:
        """For each place that of the sentence whose prompt a SIG compares with it."""
        return distractors(self.sources)

    def anchors(self, place: int) -> Sequence[int]:
        """The slots that are aligned with the source; raise InputError where no alignment is given."""
        slots = self.aligned[place] if self.aligned else None
        if slots is None:
            problem = f"sentence {self.names[place]!r} has no `anchors`, which the order oracle_anchor reveals first"
            raise InputError(self.file, problem, "Take a test set that has an alignment, or another order.")
        return slots

    @property
    def rooms(self) -> list[int]:
        """The slots that the context leaves behind each prompt, at least the shortest canvas's: :meth:`check` says what
        is too long."""
        return [max(SHORTEST, self.context - len(prompt)) for prompt in self.prompts]

    def fits(self, place: int, slots: int) -> bool:
        """Whether a canvas of so many slots behind the prompt at ``place`` is within the context."""
        return len(self.prompts[place]) + slots <= self.context

    def check(self, place: int, slots: int) -> None:
        """Raise SentenceError if a canvas of so many slots behind the prompt at ``place`` exceeds the context."""
        if not self.fits(place, slots):
            prompt = len(self.prompts[place])
            raise SentenceError(
                self.file,
                f"sentence {self.names[place]!r}: prompt {prompt} + canvas {slots} = {prompt + slots} tokens, "
                f"but the backbone's context is {self.context}",
                "Split or drop the sentence, or choose smaller ratios.",
            )

    def probes(self, canvases: Sequence[tuple[int, int]], sourceless: Sequence[int] | None = None) -> list[Probe]:
        """The requests for the readings of all-mask canvases, each named by (place, slots).

        Raises SentenceError if a canvas exceeds the context.
        """
        for place, length in canvases:
            self.check(place, length)
        return [Probe(self.prompts[place], length, sourceless) for place, length in canvases]

    def room(self, place: int) -> int:
        """The tokens of the context behind the prompt at ``place``; raise SentenceError where there are none."""
        prompt = len(self.prompts[place])
        if prompt >= self.context:  # of an autoregressive backbone, too, which has no canvas
            raise SentenceError(
                self.file,
                f"sentence {self.names[place]!r}: prompt of {prompt} tokens, but the backbone's context is "
                f"{self.context} and must hold the translation too",
                "Split or drop the sentence.",
            )
        return self.context - prompt


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


@dataclass(frozen=True)
class Texts:
    """The tokenizer of a prompt, and the ids of the tokens that end a turn and that are masks (None: it has none)."""

    prompt: Prompt
    turn_end: int | None = None
    mask: int | None = None

    def tokens(self, decoded: Decoded) -> list[int]:
        """The ids of a decoded canvas that are its text: of those before the first EOS the ones before the end of a
        turn, but for slots that were revealed as a mask."""
        before = itertools.takewhile(lambda token: token != self.turn_end, decoded.tokens[: decoded.text])
        return [token for token in before if token != self.mask]

    def text(self, decoded: Decoded) -> str:
        """The text of a decoded canvas."""
        return self.prompt.text(self.tokens(decoded))


# --- The pipeline: a canvas is chosen and denoised for each sentence.


@dataclass(frozen=True)
class Pipeline:
    """Chooses canvases and denoises them, for the sentences of ``inputs``; several may share a runner.

    With a ``cache`` approximately: the probes of length methods and the steps of canvases. A canvas that exceeds the
    context raises InputError before any pass over it.
    """

    runner: Runner
    inputs: Inputs
    cache: CachePolicy = NO_CACHE

    @classmethod
    def of(cls, engine: Engine, inputs: Inputs, cache: CachePolicy = NO_CACHE) -> Self:
        """On a loaded model, without a store: every request is computed."""
        return cls(Runner(lambda: engine, engine.ledger), inputs, cache)

    def translate(
        self, method: LengthMethod, sentences: Mapping[int, Sentence], denoising: Denoising
    ) -> Iterator[tuple[int, tuple[Row, dict[int, Decoded]]]]:
        """(place, (canvas row, what is decoded)) of each sentence as soon as it is done.

        ``sentences`` are named by their places among the inputs. No sentence waits for another: as soon as its probes
        are read, its canvas is chosen and denoised in the same passes as the probes of others.
        """
        works = ((place, self._both(method, place, sentence, denoising)) for place, sentence in sentences.items())
        return self.runner.run(works, denoising.order)

    def _both(self, method: LengthMethod, place: int, sentence: Sentence, denoising: Denoising) -> Work:
        row, readings = yield from self.choosing(method, place, sentence)
        return row, (yield from self.denoising(place, row, denoising, readings))

    def probing(self, method: LengthMethod, place: int, sentence: Sentence) -> Work:
        """The work that returns the readings of the canvases that a method proposes, by length. They are exact."""

        def probe(length: int) -> Probe:
            self.inputs.check(place, length)
            return Probe(self.inputs.prompts[place], length)

        return (yield from probing(method, sentence, probe, self.inputs.names[place]))

    def choosing(self, method: LengthMethod, place: int, sentence: Sentence, slots: int | None = None) -> Work:
        """The work of one sentence up to its :func:`~entropy_valley.lengths.base.canvas_row`, and the readings of its
        all-mask canvases by length. With ``slots`` its canvas has these, and the method is not asked.

        The row has the number of probes that did not compute the prompt as ``cached``, if there are any.
        """
        if slots is not None:
            self.inputs.check(place, slots)
            return canvas_row(Choice(slots), sentence, {}), {}
        steps, prompt = declared(method, "draft_steps"), self.inputs.prompts[place]
        probed: list[int] = []

        def probe(length: int) -> Probe | Draft:
            self.inputs.check(place, length)
            probed.append(length)
            if steps:
                return Draft(prompt, length, steps)
            return Probe(prompt, length, reuse=self.cache.of_probe(probed))

        row, probes = yield from choosing(method, sentence, probe, self.inputs.names[place])
        self.inputs.check(place, row["length"])
        if steps:
            return row, {}
        cached = self.cache.saved(range(len(probed)))
        return ({**row, "cached": cached} if cached else row), probes

    def denoising(self, place: int, row: Row, denoising: Denoising, probes: Mapping[int, ProbeResult]) -> Work:
        """The work on one sentence's canvas row: what is decoded for it, by the number of masks at the start.

        ``probes`` is what is known of its all-mask canvases; with a ``cache`` they are not exact, and not used.
        """
        inputs, lengths = self.inputs, contenders(row)
        for length in lengths:
            inputs.check(place, length)
        prompt, room = inputs.prompts[place], inputs.room(place)
        known = dict(probes) if self.cache.is_exact else {}
        if denoising.looks_at_distractor:
            other = inputs.distractors[place]
            missing = [(place, length) for length in lengths if length not in known]
            asked = [*missing, *((other, length) for length in lengths)]
            readings = dict(zip(asked, (yield inputs.probes(asked)), strict=True))  # exact ones
            known |= {length: readings[place, length] for _, length in missing}
        requests = []
        for length in lengths:
            canvas = Canvas(prompt, length, (), known.get(length), inputs.sourceless, sentence=inputs.names[place])
            distractor = None
            # What the order looks at.
            if denoising.looks_at_distractor:
                distractor = inputs.prompts[other]
                canvas = dataclasses.replace(canvas, sigs=gains(known[length], readings[other, length]))
            elif denoising.order and denoising.order.anchored:
                anchors = [slot for slot in inputs.anchors(place) if slot < length]
                canvas = dataclasses.replace(canvas, anchors=anchors)
            requests.append(denoising.request(canvas, room, distractor, self.cache))
        decoded = yield requests
        if row.get("rescoring") and len(lengths) > 1:
            decoded = yield from self._rescored(prompt, decoded)
        return dict(zip(lengths, decoded, strict=True))

    def _rescored(
        self, prompt: Sequence[int], decoded: Sequence[Decoded]
    ) -> Generator[Sequence[Request], list[Any], list[Decoded]]:
        """The same, with the log-probability of the finished text in place of that at reveal time."""
        texts = self.inputs.texts
        if texts is None:
            raise ValueError("a finished text is to be scored, and these inputs have no tokenizer")
        requests = []
        for canvas in decoded:
            written = texts.prompt.tokens(texts.text(canvas))
            requests.append(Finished(prompt, written, len(canvas.tokens)))
        scores = yield requests
        pairs = zip(decoded, scores, strict=True)
        return [dataclasses.replace(canvas, logprob=score.logprob) for canvas, score in pairs]


def contenders(canvas: Mapping[str, Any]) -> list[int]:
    """The lengths that are decoded for a canvas row: its own, unless it names several."""
    return canvas.get("contenders") or [canvas["length"]]


def winner(decoded: Mapping[int, Decoded]) -> Decoded:
    """Of canvases decoded from so many masks the one of the largest mean log-probability, at reveal time or rescored.

    The shorter one on a tie in the decimals that it has; an empty text, which has no log-probability, comes last.
    """
    return min(decoded.items(), key=lambda item: (item[1].logprob is None, -(item[1].logprob or 0.0), item[0]))[1]
