"""Translation in a few lines of Python: no workflow, no files, the same selectors and the same decoder."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from entropy_valley.canvas.length_head import LengthHead, predictions
from entropy_valley.canvas.length_methods import LengthMethod, Sentence
from entropy_valley.canvas.selection import Selection
from entropy_valley.decoding.contenders import contenders, winner
from entropy_valley.decoding.decode_job import text_tokens
from entropy_valley.decoding.denoising import Denoising
from entropy_valley.decoding.variable_length.base import GrowingCanvas
from entropy_valley.decoding.variable_length.runner import grow
from entropy_valley.engine.context import check_context, room_behind
from entropy_valley.engine.engine import Engine
from entropy_valley.engine.identity import turn_end_id
from entropy_valley.engine.queue import Canvas, Filled, Queue
from entropy_valley.engine.reading import Reading
from entropy_valley.errors import InputError

if TYPE_CHECKING:
    from entropy_valley.backbone.loading import Backbone
    from entropy_valley.backbone.prompt import Prompt


@dataclass(frozen=True)
class Translation:
    """A translation, the slots of its canvas in the end, and the score of each canvas that was compared."""

    text: str
    length: int
    scores: dict[int, float]


@dataclass(frozen=True)
class Translator:
    """A frozen backbone with a prompt, a length method, a reveal order and a step budget T.

    ``order`` may name a variable-length decoder, which takes no T and no schedule. ``length_head`` is for a method that
    uses one.
    """

    backbone: Backbone
    prompt: Prompt
    selector: LengthMethod
    order: str = "med"
    steps: int = 32
    schedule: str = "llada"
    order_settings: Mapping[str, Any] = field(default_factory=dict)
    length_head: LengthHead | None = None

    def translate(self, sources: Sequence[str]) -> list[Translation]:
        """The translations of ``sources``, in their order; all are decoded together.

        Raises InputError, before that canvas is read, for one that exceeds the backbone's context.
        """
        prompts = [self.prompt.encode(source) for source in sources]
        sentences = [
            Sentence(
                len(self.prompt.tokens(source)),
                predicted=lengths,
                room=room_behind(len(prompt), self.backbone.context),
            )
            for source, prompt, lengths in zip(sources, prompts, self._predicted(prompts), strict=True)
        ]
        denoising = Denoising.named(self.order, self.steps, self.schedule, self.order_settings)
        engine, sourceless = Engine(self.backbone), self.prompt.encode("")
        done = dict(decode(engine, self.selector, sentences, prompts, denoising, sourceless))
        return [self._translation(*done[place]) for place in range(len(sources))]

    def _predicted(self, prompts: Sequence[Sequence[int]]) -> list[dict[int, float] | None]:
        """What the length head says of each prompt; None: the selector uses none."""
        if not getattr(self.selector, "uses_length_head", False):
            return [None] * len(prompts)
        if self.length_head is None:
            raise InputError("selector", "needs a length head", "Give the translator one.")
        predicted = dict(predictions(self.length_head, self.backbone, prompts))
        return [predicted[place] for place in range(len(prompts))]

    def _translation(self, row: dict[str, Any], filled: Filled) -> Translation:
        turn_end = turn_end_id(self.prompt.tokenizer, self.backbone.family)
        text = self.prompt.text(text_tokens(filled.tokens, filled.text, turn_end))
        return Translation(text, len(filled.tokens), dict(zip(row["candidates"], row["scores"], strict=False)))


def decode(
    engine: Engine,
    selector: LengthMethod,
    sentences: Sequence[Sentence],
    prompts: Sequence[Sequence[int]],
    denoising: Denoising,
    sourceless: Sequence[int] | None = None,
) -> Iterator[tuple[int, tuple[dict[str, Any], Filled]]]:
    """(place, (choice, decoded canvas)) of each sentence as soon as it is done.

    Nothing waits for the slowest: as soon as its probes are read, a sentence's canvas is chosen and denoised beside
    the probes of others; only a variable-length decoder begins when all canvases are chosen. ``sourceless`` is the
    prompt with an empty source, for the orders that look at it. Of several contenders the decoded canvas is the
    :func:`~entropy_valley.decoding.contenders.winner`. Raises InputError for a canvas that exceeds the context.
    """
    context, decoder, growing = engine.backbone.context, denoising.variable_length, []
    queue, rows = Queue(), {}
    decoded: list[dict[int, Filled]] = [{} for _ in sentences]
    selections = [Selection(selector, sentence) for sentence in sentences]

    def go_on(place: int) -> None:
        selection, prompt = selections[place], prompts[place]
        for length in selection.proposals():
            check_context("sources", place + 1, len(prompt), length, context)
            queue.put((place, length), Canvas(prompt, length))
        if selection.waits:
            return
        rows[place] = selection.row()
        for length in contenders(rows[place]):
            check_context("sources", place + 1, len(prompt), length, context)
            start = selection.probes.get(length)
            if decoder:
                most = min(decoder.cap, context - len(prompt))
                growing.append(((place, length), GrowingCanvas(prompt, length, most, start)))
            else:
                queue.put((place, length), denoising.canvas(prompt, sourceless, length, start))

    for place in range(len(sentences)):
        go_on(place)
    filled = engine.run(queue, denoising.order)
    for (place, length), result in itertools.chain(filled, grow(engine, growing, decoder)):
        if isinstance(result, Reading):
            selections[place].probes[length] = result
            go_on(place)
            continue
        known = decoded[place]
        known[length] = result
        if len(known) == len(contenders(rows[place])):
            yield place, (rows[place], known[winner({one: filled.logprob for one, filled in known.items()})])
