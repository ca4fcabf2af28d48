"""Translation in a few lines of Python: no workflow, no files, the same selectors and the same decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from entropy_valley.canvas.card import turn_end_id
from entropy_valley.canvas.selection import choose_canvases
from entropy_valley.canvas.selectors import Selector, Sentence
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import make_order
from entropy_valley.decoding.tasks import Canvas
from entropy_valley.decoding.translation import Denoising, text_tokens

if TYPE_CHECKING:
    from entropy_valley.backbone.loading import Backbone
    from entropy_valley.backbone.prompt import Prompt
    from entropy_valley.canvas.reading import Reading


@dataclass(frozen=True)
class Translation:
    """A translation, the slots of its canvas, and the score of each canvas that was compared."""

    text: str
    length: int
    scores: dict[int, float]


@dataclass(frozen=True)
class Translator:
    """A frozen backbone with a prompt, a length selector, a reveal order and a step budget T."""

    backbone: Backbone
    prompt: Prompt
    selector: Selector
    order: str = "med"
    steps: int = 32
    schedule: str = "llada"

    def translate(self, sources: Sequence[str]) -> list[Translation]:
        """The translations of ``sources``, in their order; all are decoded together."""
        engine, prompts = Engine(self.backbone), [self.prompt.encode(source) for source in sources]
        readings: dict[tuple[int, int], Reading] = {}

        def probe(asked: Sequence[tuple[int, int]]) -> list[Reading]:
            canvases = [Canvas(prompts[place], length) for place, length in asked]
            readings.update((asked[done], reading) for done, reading in engine.probe(canvases))
            return [readings[key] for key in asked]

        sentences = [Sentence(len(self.prompt.tokens(source))) for source in sources]
        chosen = choose_canvases(self.selector, sentences, probe)
        denoising = Denoising(self.order, self.steps, self.schedule)
        canvases = [
            Canvas(prompt, row["length"], denoising.counts(row["length"]), readings.get((place, row["length"])))
            for place, (prompt, row) in enumerate(zip(prompts, chosen, strict=True))
        ]
        filled = dict(engine.fill(canvases, make_order(self.order)))
        turn_end = turn_end_id(self.prompt.tokenizer, self.backbone.family)
        return [
            Translation(
                self.prompt.text(text_tokens(filled[place].tokens, filled[place].text, turn_end)),
                row["length"],
                dict(zip(row["candidates"], row["scores"], strict=False)),
            )
            for place, row in enumerate(chosen)
        ]
