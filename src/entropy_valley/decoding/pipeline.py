"""From prompts to translations: one way for the workflow's jobs, the library, the latency benchmark and `benchmarks/`.

With a store nothing is computed twice, and a model is loaded at the first miss; without one all is computed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from entropy_valley.decoding.prompt_cache import beside
from entropy_valley.engine.distractor import Gain, anchored, gains
from entropy_valley.engine.draft import Draft
from entropy_valley.engine.finished import Finished
from entropy_valley.engine.probe import Probe
from entropy_valley.engine.requests import Runner
from entropy_valley.lengths.select import choosing, draft_steps

if TYPE_CHECKING:
    from entropy_valley.decoding.denoising import Denoising
    from entropy_valley.engine.context import Inputs
    from entropy_valley.engine.engine import Engine
    from entropy_valley.engine.queue import Decoded
    from entropy_valley.engine.reading import Reading
    from entropy_valley.engine.requests import Request, Work
    from entropy_valley.lengths import LengthMethod, Sentence

Row = dict[str, Any]  # a sentence's row of the canvas file


@dataclass(frozen=True)
class Pipeline:
    """Chooses canvases, denoises them, or both, for the sentences of ``inputs``; several may share a runner.

    With ``refresh`` approximately, see :mod:`.prompt_cache`: the probes of length methods and the steps of canvases.
    A canvas that exceeds the context raises InputError before any pass over it. ValueError for a ``refresh`` below 1.
    """

    runner: Runner
    inputs: Inputs
    refresh: int | None = None

    def __post_init__(self) -> None:
        if self.refresh is not None and self.refresh < 1:
            raise ValueError(f"refresh is {self.refresh}: the prompt is computed in every k-th pass, k at least 1")

    @classmethod
    def of(cls, engine: Engine, inputs: Inputs, refresh: int | None = None) -> Self:
        """On a loaded model, without a store: every request is computed."""
        return cls(Runner(lambda: engine, engine.ledger), inputs, refresh)

    def choose(self, method: LengthMethod, sentences: Sequence[Sentence]) -> list[Row]:
        """The :func:`~entropy_valley.lengths.select.canvas_row` of each sentence."""
        works = ((place, self.choosing(method, place, one, {})) for place, one in enumerate(sentences))
        return _in_order(self.runner.run(works))

    def denoise(self, canvases: Iterable[Row], denoising: Denoising) -> list[dict[int, Decoded]]:
        """What is decoded for each canvas row, by the number of masks at the start: one, or each of its contenders."""
        works = ((place, self.denoising(place, row, denoising, {})) for place, row in enumerate(canvases))
        return _in_order(self.runner.run(works, denoising.order))

    def translate(
        self, method: LengthMethod, sentences: Mapping[int, Sentence], denoising: Denoising
    ) -> Iterator[tuple[int, tuple[Row, dict[int, Decoded]]]]:
        """(place, (canvas row, what is decoded)) of each sentence as soon as it is done.

        ``sentences`` are named by their places among the inputs. No sentence waits for another: as soon as its probes
        are read, its canvas is chosen and denoised in the same passes as the probes of others.
        """
        works = ((place, self._both(method, place, one, denoising)) for place, one in sentences.items())
        return self.runner.run(works, denoising.order)

    def _both(self, method: LengthMethod, place: int, sentence: Sentence, denoising: Denoising) -> Work:
        probes: dict[int, Reading] = {}
        row = yield from self.choosing(method, place, sentence, probes)
        known = {} if draft_steps(method) else probes
        return row, (yield from self.denoising(place, row, denoising, known))

    def choosing(self, method: LengthMethod, place: int, sentence: Sentence, probes: dict[int, Reading]) -> Work:
        """The work of one sentence up to its canvas row; ``probes`` takes the readings.

        The row has the number of probes that did not compute the prompt as ``cached``, if there are any.
        """

        steps, prompt = draft_steps(method), self.inputs.prompts[place]
        asked: list[int] = []

        def probe(length: int) -> Probe | Draft:
            self.inputs.check(place, length)
            asked.append(length)
            if steps:
                return Draft(prompt, length, steps)
            source = beside(asked, self.refresh)
            return Probe(prompt, length, beside=source, is_source=(self.refresh or 1) > 1 and source is None)

        row = yield from choosing(method, sentence, probe, probes, self.inputs.names[place])
        self.inputs.check(place, row["length"])
        cached = 0 if steps else len(asked) - math.ceil(len(asked) / (self.refresh or 1))
        return {**row, "cached": cached} if cached else row

    def denoising(self, place: int, row: Row, denoising: Denoising, probes: Mapping[int, Reading]) -> Work:
        """The work on one sentence's canvas row, ``probes`` being what is known of its all-mask canvases; with a
        ``refresh`` they are no exact readings, and not used."""
        probes = {} if self.refresh else probes
        lengths, prompt, sourceless = contenders(row), self.inputs.prompts[place], self.inputs.sourceless
        names = self.inputs.names
        for length in lengths:
            self.inputs.check(place, length)
        room, gained = self.inputs.room(place), {}
        if denoising.looks_at_distractor:
            probes, gained = yield from self._gains(place, lengths, probes)
        elif denoising.looks_at_anchors:
            gained = {length: anchored(self.inputs.anchors(place), length) for length in lengths}
        known = ((length, probes.get(length), gained.get(length)) for length in lengths)
        decoded = yield [
            denoising.request(prompt, sourceless, length, room, *more, sentence=names[place], refresh=self.refresh)
            for length, *more in known
        ]
        if row.get("rescoring") and len(lengths) > 1:
            decoded = yield from self._rescored(prompt, decoded, denoising)
        return dict(zip(lengths, decoded, strict=True))

    def _rescored(
        self, prompt: Sequence[int], decoded: Sequence[Decoded], denoising: Denoising
    ) -> Generator[Sequence[Request], list[Any], list[Decoded]]:
        """The same, with the log-probability of the finished text in place of that at reveal time."""
        texts = [self.inputs.texts.again(one) for one in decoded]
        pairs = zip(texts, decoded, strict=True)
        scores = yield [Finished(prompt, text, len(one.tokens), denoising.mask_token) for text, one in pairs]
        return [dataclasses.replace(one, logprob=its.logprob) for one, its in zip(decoded, scores, strict=True)]

    def _gains(
        self, place: int, lengths: Sequence[int], probes: Mapping[int, Reading]
    ) -> Generator[Sequence[Request], list[Any], tuple[dict[int, Reading], dict[int, Gain]]]:
        """The readings of canvases of these lengths, those that are known included, and the SIG of their slots."""
        inputs, missing = self.inputs, [length for length in lengths if length not in probes]
        other = inputs.distractor(place)
        for length in lengths:
            inputs.check(other, length)
        asked = [(place, length) for length in missing] + [(other, length) for length in lengths]
        readings = yield [Probe(inputs.prompts[one], length) for one, length in asked]
        known = {**probes, **dict(zip(missing, readings, strict=False))}
        pairs = zip(lengths, readings[len(missing) :], strict=True)
        return known, {length: Gain(inputs.prompts[other], gains(known[length], it)) for length, it in pairs}


def contenders(canvas: Mapping[str, Any]) -> list[int]:
    """The lengths that are decoded for a canvas row: its own, unless it names several."""
    return canvas.get("contenders") or [canvas["length"]]


def winner(decoded: Mapping[int, Decoded]) -> Decoded:
    """Of canvases decoded from so many masks the one of the largest mean log-probability, at reveal time or rescored.

    The shorter one on a tie in the decimals that it has; an empty text, which has no log-probability, comes last.
    """
    return min(decoded.items(), key=lambda item: (item[1].logprob is None, -(item[1].logprob or 0.0), item[0]))[1]


def _in_order(results: Iterator[tuple[int, Any]]) -> list[Any]:
    done = dict(results)
    return [done[place] for place in range(len(done))]
