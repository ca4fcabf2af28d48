"""Translation in a few lines of Python: no workflow, no files, the same length methods and the same decoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from entropy_valley.canvas.length_head import LengthHead, predictions
from entropy_valley.canvas.length_methods import LengthMethod
from entropy_valley.canvas.selection import sentences_of
from entropy_valley.decoding.denoising import Denoising
from entropy_valley.decoding.pipeline import Pipeline, winner
from entropy_valley.engine.context import Inputs
from entropy_valley.engine.engine import Engine
from entropy_valley.engine.finished import Texts
from entropy_valley.engine.identity import turn_end_id
from entropy_valley.errors import InputError

if TYPE_CHECKING:
    from entropy_valley.backbone.loading import Backbone
    from entropy_valley.backbone.prompt import Prompt
    from entropy_valley.engine.queue import Decoded


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
    method: LengthMethod
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
        names, without = range(1, len(sources) + 1), self.prompt.encode("")
        texts = Texts(self.prompt, turn_end_id(self.prompt.tokenizer, self.backbone.family), self.backbone.mask_id)
        inputs = Inputs("sources", names, prompts, without, self.backbone.context, sources, texts=texts)
        rows, predicted = [{"source": source} for source in sources], self._predicted(prompts)
        sentences = sentences_of(rows, self.prompt, self.method, predicted, inputs.rooms)
        denoising = Denoising.named(self.order, self.steps, self.schedule, self.order_settings)
        pipeline = Pipeline.of(Engine(self.backbone), inputs)
        done = dict(pipeline.translate(self.method, dict(enumerate(sentences)), denoising))
        return [_translation(texts, *done[place]) for place in range(len(sources))]

    def _predicted(self, prompts: Sequence[Sequence[int]]) -> list[dict[int, float] | None]:
        """What the length head says of each prompt; None: the length method uses none."""
        if not getattr(self.method, "uses_length_head", False):
            return [None] * len(prompts)
        if self.length_head is None:
            raise InputError("length method", "needs a length head", "Give the translator one.")
        predicted = dict(predictions(self.length_head, self.backbone, prompts))
        return [predicted[place] for place in range(len(prompts))]


def _translation(texts: Texts, row: dict[str, Any], decoded: Mapping[int, Decoded]) -> Translation:
    best = winner(decoded)
    scores = dict(zip(row["candidates"], row["scores"], strict=False))
    return Translation(texts.text(best), len(best.tokens), scores)
