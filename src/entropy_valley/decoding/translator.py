"""Translation in a few lines of Python: no workflow, no files, the same length methods and the same decoder."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from entropy_valley.decoding.denoising import Denoising
from entropy_valley.decoding.pipeline import Pipeline, Row, winner
from entropy_valley.engine.context import Inputs
from entropy_valley.engine.engine import Engine
from entropy_valley.engine.finished import Texts
from entropy_valley.engine.identity import turn_end_id
from entropy_valley.engine.probe import Probe
from entropy_valley.errors import InputError, SentenceError
from entropy_valley.lengths import LengthMethod
from entropy_valley.lengths.ev import mean_entropy
from entropy_valley.lengths.length_head import LengthHead, predictions
from entropy_valley.lengths.select import draft_steps, sentences_of
from entropy_valley.model import adapters
from entropy_valley.model.prompt import Prompt, attention_of

if TYPE_CHECKING:
    from entropy_valley.engine.queue import Decoded
    from entropy_valley.engine.reading import Reading
    from entropy_valley.engine.requests import Work
    from entropy_valley.lengths import Sentence
    from entropy_valley.model.load import Backbone


@dataclass(frozen=True)
class Translation:
    """A translation. Of an empty or blank source it is empty, and nothing is computed.

    ``length``: the slots of its canvas in the end; ``canvas``: those that the length method chose, which only a
    variable-length decoder or a method with contenders changes. ``scores``: what the method compared, by slots.
    ``entropies``: the mean entropy (nats) of each all-mask canvas that was read, by slots; None for a single slot, as
    the mean leaves the last one out. ``logprob``: the mean log-probability of its tokens as they were revealed.
    ``problem``: why there is no translation.
    """

    text: str
    length: int = 0
    scores: dict[int, float] = field(default_factory=dict)
    canvas: int = 0
    entropies: dict[int, float | None] = field(default_factory=dict)
    logprob: float | None = None
    problem: SentenceError | None = None

    @property
    def entropy(self) -> float | None:
        """The mean entropy of the chosen canvas before its first step."""
        return self.entropies.get(self.canvas)


@dataclass(frozen=True)
class Translator:
    """A frozen backbone with a prompt, a length method, a reveal order and a step budget T.

    ``order`` may name a variable-length decoder, which takes no T and no schedule. ``length_head`` is for a method that
    uses one. ``engine`` runs the passes; translators with other methods may share it. ``mask_token``: whether a slot
    may be revealed as a mask. ``refresh``: see :mod:`.prompt_cache`.
    """

    backbone: Backbone
    prompt: Prompt
    method: LengthMethod
    order: str = "med"
    steps: int = 32
    schedule: str = "llada"
    order_settings: Mapping[str, Any] = field(default_factory=dict)
    length_head: LengthHead | None = None
    engine: Engine | None = None
    mask_token: bool = False
    refresh: int | None = None

    @classmethod
    def load(
        cls,
        backbone: str | Path,
        adapter: str | Path,
        method: LengthMethod,
        device: str = "cpu",
        dtype: str = "float32",
        **more: Any,
    ) -> Self:
        """From the folders of a checkpoint and of an adapter that was trained here, with the prompt of its training.

        ``more`` are fields of the translator. Raises InputError for an adapter without the facts of its training, and
        as :func:`~entropy_valley.model.load.load_backbone` does.
        """
        from entropy_valley.model.load import load_backbone

        spec = adapters.facts(Path(adapter)).get("spec", {})
        if "prompt" not in spec:
            problem = f"no {adapters.FACTS} says with which prompt it was trained"
            raise InputError(adapter, problem, "Load it by load_backbone, and make a Prompt and a Translator.")
        loaded = load_backbone(
            backbone,
            spec["family"],
            device=device,
            dtype=dtype,
            adapter=adapter,
            shifted=spec["shifted"],
            attention=attention_of(spec),
        )
        prompt = Prompt(spec["prompt"], loaded.tokenizer, loaded.bos_id if spec["bos"] else None)
        return cls(loaded, prompt, method, **more)

    def translate(
        self,
        sources: Sequence[str],
        *,
        skip: bool = False,
        place: str = "sources",
        names: Sequence[object] = (),
    ) -> list[Translation]:
        """The translations of a list of sentences, in their order; all are decoded together.

        Raises InputError for one that exceeds the backbone's context, and names it: ``place`` is where it stands,
        ``names`` has its name there (none: its number, from 1). With ``skip`` its translation has the error as its
        ``problem``, and the others are translated; so also where anything else is wrong with one sentence alone. What a
        class of the user's does wrong is raised all the same. Raises InputError for a single text too.
        """
        return self._all(sources, self.denoising, skip, place, names)

    @property
    def denoising(self) -> Denoising:
        """How canvases are filled. An order that :attr:`.Denoising.looks_at_distractor` compares each sentence with
        another one of its list."""
        denoising = Denoising.named(self.order, self.steps, self.schedule, self.order_settings)
        return dataclasses.replace(denoising, mask_token=self.mask_token)

    def entropies(self, sources: Sequence[str], names: Sequence[object] = ()) -> list[float]:
        """The :attr:`Translation.entropy` of each sentence that fits into the context and has one; none is denoised.
        ``names`` are for errors."""
        found = self._all(sources, None, True, "sources", names)
        return [one.entropy for one in found if one.entropy is not None]

    def has_unknown(self, source: str) -> bool:
        """Whether the tokenizer reads a part of the source as its unknown token. One of bytes has no such token."""
        unknown = getattr(self.prompt.tokenizer, "unk_token_id", None)
        return unknown is not None and unknown in self.prompt.tokens(source)

    def _all(
        self, sources: Sequence[str], denoising: Denoising | None, skip: bool, place: str, names: Sequence[object]
    ) -> list[Translation]:
        if isinstance(sources, str):
            raise InputError(place, "a single text, which would be read letter by letter", "Give a list: [text].")
        names = names or range(1, len(sources) + 1)
        asked = [number for number, source in enumerate(sources) if source.strip()]
        inputs = self._inputs(place, [names[number] for number in asked], [sources[number] for number in asked])
        found = {asked[index]: one for index, one in self._translations(inputs, denoising, skip)}
        return [found.get(number, Translation("")) for number in range(len(sources))]

    def _inputs(self, place: str, names: Sequence[object], sources: Sequence[str]) -> Inputs:
        prompts, without = [self.prompt.encode(source) for source in sources], self.prompt.encode("")
        texts = Texts(self.prompt, turn_end_id(self.prompt.tokenizer, self.backbone.family), self.backbone.mask_id)
        return Inputs(place, names, prompts, without, self.backbone.context, sources, texts=texts)

    def _translations(
        self, inputs: Inputs, denoising: Denoising | None, skip: bool
    ) -> Iterator[tuple[int, Translation]]:
        """(place among the inputs, translation) of each sentence."""
        pipeline, predicted = Pipeline.of(self._engine, inputs, self.refresh), self._predicted(inputs)
        rows = [{"source": source} for source in inputs.sources]
        sentences = sentences_of(rows, self.prompt, self.method, predicted, inputs.rooms)
        works = ((place, self._work(pipeline, place, one, denoising)) for place, one in enumerate(sentences))
        if skip:
            works = ((place, _caught(work, inputs, place)) for place, work in works)
        yield from pipeline.runner.run(works, denoising and denoising.order)

    def _work(self, pipeline: Pipeline, place: int, sentence: Sentence, denoising: Denoising | None) -> Work:
        """Choose a canvas, read it where the method has not, and denoise it from this reading."""
        pipeline.inputs.room(place)  # raises where there is none
        probes: dict[int, Any] = {}
        row = yield from pipeline.choosing(self.method, place, sentence, probes)
        readings = {} if draft_steps(self.method) else probes
        if row["length"] not in readings:
            (readings[row["length"]],) = yield [Probe(pipeline.inputs.prompts[place], row["length"])]
        entropies = {length: _entropy(reading) for length, reading in sorted(readings.items())}
        if denoising is None:
            return Translation("", canvas=row["length"], entropies=entropies)
        decoded = yield from pipeline.denoising(place, row, denoising, readings)
        return _translation(pipeline.inputs.texts, row, entropies, winner(decoded))

    @functools.cached_property
    def _engine(self) -> Engine:
        return self.engine or Engine(self.backbone, reveals_masks=self.mask_token)

    def _predicted(self, inputs: Inputs) -> list[dict[int, float] | None]:
        """What the length head says of each prompt that fits into the context; None: the method uses none."""
        if not getattr(self.method, "uses_length_head", False):
            return [None] * len(inputs.prompts)
        if self.length_head is None:
            raise InputError("length method", "needs a length head", "Give the translator one.")
        engine, fitting = self._engine, [place for place in range(len(inputs.prompts)) if inputs.fits(place, 1)]
        prompts = [inputs.prompts[place] for place in fitting]
        found = predictions(self.length_head, self.backbone, prompts, None, engine.budget, engine.fill)
        predicted = {fitting[index]: lengths for index, lengths in found}
        return [predicted.get(place) for place in range(len(inputs.prompts))]


def _caught(work: Work, inputs: Inputs, place: int) -> Work:
    """The same work; an error of its sentence alone is the translation's problem."""
    try:
        return (yield from work)
    except SentenceError as error:
        problem = error
    except InputError:  # such as of a user's own class: no sentence can be at fault
        raise
    except Exception as error:  # ours, unforeseen: it costs no other sentence
        what = f"sentence {inputs.names[place]!r}: {type(error).__name__}: {error}"
        problem = SentenceError(inputs.file, what, "This is a fault of entropy-valley: please report it.")
        problem.__cause__ = error
    return Translation("", problem=problem)


def _entropy(reading: Reading) -> float | None:
    """The mean entropy of a canvas; None where its last slot is the only one."""
    return mean_entropy(reading) if len(reading.entropies) > 1 else None


def _translation(texts: Texts, row: Row, entropies: dict[int, float | None], best: Decoded) -> Translation:
    scores = dict(zip(row["candidates"], row["scores"], strict=False))
    return Translation(texts.text(best), len(best.tokens), scores, row["length"], entropies, best.logprob)
