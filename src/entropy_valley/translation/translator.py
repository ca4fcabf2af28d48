"""Translation in a few lines of Python: no workflow, no files, the same length methods and the same decoder.

:class:`Translator` is the library's front door; it goes the way of all who decode, :class:`.Sentences`.
:class:`TypicalEntropy` finds what makes a translation doubtful before anybody has read it.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from entropy_valley.decoding.canvas import CachePolicy, Decoded, ProbeResult
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.requests import Denoising, Runner, Work
from entropy_valley.errors import InputError, SentenceError, brief
from entropy_valley.lengths import LengthMethod, Sentence, find_method, make_method
from entropy_valley.lengths.base import PARTS, declared
from entropy_valley.lengths.ev import mean_entropy
from entropy_valley.lengths.length_head import LengthHead, predictions
from entropy_valley.lengths.settings import LengthStatisticsSection
from entropy_valley.lengths.statistics import LengthStatistics
from entropy_valley.model import adapters, load
from entropy_valley.model.families import STOCK, find_family
from entropy_valley.model.load import Backbone
from entropy_valley.model.prompt import Prompt, attention_of, bos_of
from entropy_valley.model.wrapped import Wrapped
from entropy_valley.plugins import GUIDE
from entropy_valley.progress import progress
from entropy_valley.settings import JsonObject, check_template
from entropy_valley.texts import checked_sentence, counted
from entropy_valley.translation.fits import Pairs
from entropy_valley.translation.sentences import Row, Sentences, caught, winner

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SENTENCES = 99  # then one sentence in a hundred of the same kind is above all of them by chance


@dataclass(frozen=True, repr=False)
class Translation:
    """A translation. Of an empty or blank source it is empty, and nothing is computed.

    ``length``: the slots of its canvas in the end; ``canvas``: those that the length method chose, which only a
    variable-length decoder or a method with contenders changes. ``scores``: what the method compared, by slots.
    ``entropies``: the mean entropy (nats) of each all-mask canvas that was read, by slots; None for a single slot, as
    the mean leaves the last one out. ``readings``: their values slot by slot. ``logprob``: the mean log-probability of
    its tokens as they were revealed. ``problem``: why there is no translation.
    """

    text: str
    length: int = 0
    scores: dict[int, float] = field(default_factory=dict)
    canvas: int = 0
    entropies: dict[int, float | None] = field(default_factory=dict)
    logprob: float | None = None
    problem: SentenceError | None = None
    readings: dict[int, ProbeResult] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Row, readings: dict[int, ProbeResult], text: str = "", decoded: Decoded | None = None) -> Self:
        """From the canvas row that a method has chosen, and its readings; with its text, if it has been decoded."""
        length, logprob = (len(decoded.tokens), decoded.logprob) if decoded else (row["length"], None)
        scores = dict(zip(row["candidates"], row["scores"], strict=False))
        entropies = {slots: mean_entropy(one) if slots > 1 else None for slots, one in sorted(readings.items())}
        return cls(text, length, scores, row["length"], entropies, logprob, readings=readings)

    @property
    def entropy(self) -> float | None:
        """The mean entropy of the chosen canvas before its first step."""
        return self.entropies.get(self.canvas)

    def __repr__(self) -> str:
        """The text, the slots of its canvas, in the end too where they changed, and the curve that :meth:`plot` draws;
        or why there is none."""
        if self.problem:
            return f"Translation(problem={self.problem.problem!r})"
        curve = ", ".join(
            f"{slots}: {'–' if entropy is None else format(entropy, '.2f')}"
            for slots, entropy in sorted(self.entropies.items())
        )
        changed = f"length={self.length}, " if self.text and self.length != self.canvas else ""
        return f"Translation({self.text!r}, canvas={self.canvas}, {changed}entropies={{{curve}}})"

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw :attr:`entropies` over the slots of each canvas, the chosen one as a large dot; return the axes.

        ``axes``: of matplotlib; None: new ones. Raises ImportError where matplotlib is missing.
        """
        if axes is None:
            try:
                from matplotlib import pyplot
            except ImportError as error:
                raise ImportError(f"{error}. plot() needs matplotlib: pip install '.[plot]' in the clone") from None

            _, axes = pyplot.subplots(figsize=(4, 2.5), layout="constrained")
        curve = {slots: entropy for slots, entropy in sorted(self.entropies.items()) if entropy is not None}
        axes.plot(list(curve), list(curve.values()), "o-", markersize=4)
        if self.entropy is not None:
            axes.plot(self.canvas, self.entropy, "o", color=axes.lines[-1].get_color(), markersize=9)
        axes.set_xticks(list(curve))
        axes.set(xlabel="slots of the canvas", ylabel="mean entropy (nats)")
        return axes


@dataclass(frozen=True)
class Translator:
    """A frozen backbone with a prompt, a length method, a reveal order and a step budget T.

    ``order`` may name a variable-length decoder, which takes no T and no schedule. ``length_head`` is for a method that
    uses one. ``engine`` runs the passes; translators with other methods may share it. ``mask_token``: whether a slot
    may be revealed as a mask. ``cache``: of prompts, see :class:`.CachePolicy`.
    """

    backbone: Backbone = field(repr=False)
    prompt: Prompt
    method: LengthMethod
    order: str = "med"
    steps: int = 32
    schedule: str = "llada"
    order_settings: JsonObject = field(default_factory=dict)
    length_head: LengthHead | None = field(default=None, repr=False)
    engine: Engine | None = field(default=None, repr=False)
    mask_token: bool = False
    cache: CachePolicy | None = None

    def __post_init__(self) -> None:
        if isinstance(self.method, str | type):
            remedy = "Give make_method(NAME, {…}), or an object of the class. Translator.load takes both."
            raise InputError("method", f"{brief(self.method, 60)} is a name or a class", remedy)
        if missing := [part for part in PARTS if not hasattr(self.method, part)]:
            raise InputError("method", f"{brief(self.method, 60)} has no {' and no '.join(missing)}", GUIDE)
        if declared(self.method, "sees_reference"):
            problem = f"{type(self.method).__name__} needs the reference of each sentence"
            remedy = "Give translate(…, lengths=…) those of the references, len(translator.prompt.tokens(y)) + 1."
            raise InputError("length method", problem, remedy)
        if self.backbone and self.backbone.family.is_stock and self.cache:
            raise InputError("cache", "a stock class keeps no prompts", "Leave it out.")
        if isinstance(self.prompt, str):
            remedy = "Give dataclasses.replace(translator.prompt, template=…)."
            raise InputError("prompt", f"{brief(self.prompt, 60)!r} is a text", remedy)

    @classmethod
    def load(
        cls,
        backbone: str | Path,
        adapter: str | Path | None = None,
        method: str | type[LengthMethod] | LengthMethod = "ev",
        *,
        ratios: float | Sequence[float] | None = None,
        prompt: str | None = None,
        family: str | None = None,
        bos: bool | None = None,
        chat: bool = False,
        device: str | torch.device = "cpu",
        dtype: str | torch.dtype = "float32",
        **more: Any,
    ) -> Self:
        """From a checkpoint and an adapter: each a folder, or ``OWNER/NAME`` of the hub, which is downloaded once.

        ``adapter``: in PEFT's format; None: the bare checkpoint. ``method``: a length method, or the name or class of
        one, with its usual settings and these ``ratios``. The ``prompt`` has ``{src}`` where the source goes; with
        ``chat`` it is a user's message in the family's chat template. ``bos``: whether it begins with the BOS
        token. What is not given is that of the adapter's training, if it was trained here; ``family`` and ``bos`` are
        else those of the checkpoint. ``more`` are fields of the translator, such as ``order`` and ``steps``.
        :func:`entropy_valley.released` has the arguments for the adapters of the paper's authors.

        Raises InputError for what is needed and neither given nor known, and as
        :func:`~entropy_valley.model.load.load_backbone` does.
        """
        if prompt is not None:
            check_template(prompt)
        unloaded = cls(None, None, _length_method(method, ratios), **more)  # type: ignore[arg-type]  # until the end
        unloaded.denoising  # noqa: B018 - raises for a wrong order or steps, before anything is loaded
        device, dtype = str(device), str(dtype).removeprefix("torch.")
        load.require_device(device)
        load.torch_dtype(dtype)
        folder = None if adapter is None else load.find_adapter(adapter)  # before the larger download
        trained: dict[str, Any] = {}
        if folder:
            trained = adapters.read_facts(folder).get("spec", {})
            if not family and "family" in trained:
                family = find_family(trained["family"], folder / adapters.FACTS).name
        template = trained.get("prompt") if prompt is None else prompt
        if template is None:
            problem = "no prompt is given, and its files do not say with which one it was trained"
            raise InputError(adapter or backbone, problem, "Give prompt=, with {src} where the source goes.")
        checkpoint, family = load.find_checkpoint(backbone, family)
        kind = find_family(family)
        if kind.causal:
            raise InputError(backbone, "is autoregressive, and has no canvas", "Give a masked diffusion checkpoint.")
        if chat and prompt is not None:  # that of the adapter's training is in its template already
            template = kind.in_chat(prompt)
        bos = trained.get("bos", kind.bos) if bos is None else bos
        loaded = load.load_backbone(
            checkpoint,
            family,
            device=device,
            dtype=dtype,
            adapter=folder,
            shifted=trained.get("shifted"),
            attention=attention_of(trained),
        )
        read = Prompt(template, loaded.tokenizer, bos_of(bos, loaded.bos_id))
        return dataclasses.replace(unloaded, backbone=loaded, prompt=read)

    @classmethod
    def of(
        cls,
        module: Any,
        tokenizer: Any,
        *,
        mask: str | int,
        eos: str | int,
        prompt: str,
        method: str | type[LengthMethod] | LengthMethod = "ev",
        ratios: float | Sequence[float] | None = None,
        shifted: bool = False,
        **more: Any,
    ) -> Self:
        """From any module and tokenizer of transformers: slower than a family of :meth:`load`.

        Its rows must see all others: under a 4-D mask, or without one. ``mask`` and ``eos`` are tokens or their ids.
        ``shifted``: slot i is read from row i - 1. The other arguments are those of :meth:`load`; ``prompt`` has the
        BOS token, if there is one.
        """
        ids: dict[str, Any] = {}
        for name, token in (("mask", mask), ("eos", eos)):
            ids[f"{name}_id"] = token if isinstance(token, int) else tokenizer.get_vocab().get(token)
            if ids[f"{name}_id"] is None:
                raise InputError(name, f"the tokenizer has no token {brief(token, 60)}", "Give a token or its id.")
        backbone = Backbone(
            family=STOCK,
            model=Wrapped(module.eval()),  # type: ignore[arg-type]  # runs as a decoder
            tokenizer=tokenizer,
            **ids,
            bos_id=None,
            digest="",
            shifted=shifted,
            context=getattr(module.config, "max_position_embeddings", sys.maxsize),
        )
        return cls(backbone, Prompt(prompt, tokenizer), _length_method(method, ratios), **more)

    def translate(
        self,
        sources: Iterable[str],
        *,
        lengths: Iterable[int] | None = None,
        skip: bool = False,
        progress: bool = False,
        place: str = "sources",
        names: Sequence[object] = (),
    ) -> list[Translation]:
        """The translations of a list of sentences, in their order; all are decoded together.

        ``lengths``: the slots of each sentence's canvas, with that of the EOS; None: the length method chooses them.
        ``progress``: show a bar on stderr.

        Raises InputError for one that exceeds the backbone's context or has what no text has (NUL, half of a surrogate
        pair), and names it: ``place`` is where it stands, ``names`` has its name there (none: its number, from 1). With
        ``skip`` its translation has the error as its ``problem``, and the others are translated. Raises InputError for
        a single text too.
        """
        return self._all(sources, self.denoising, skip, place, names, lengths, progress)

    @functools.cached_property
    def denoising(self) -> Denoising:
        """How canvases are filled. An order that :attr:`.Denoising.looks_at_distractor` compares each sentence with
        another one of its list."""
        return Denoising.named(self.order, self.steps, self.schedule, self.order_settings, self.mask_token)

    def entropies(self, sources: Iterable[str], names: Sequence[object] = ()) -> list[float | None]:
        """The :attr:`Translation.entropy` of each sentence, in their order; none is denoised. None for a sentence that
        is blank, does not fit into the context, or has a canvas of one slot. ``names`` are for errors."""
        return [translation.entropy for translation in self._all(sources, None, names=names)]

    def seconds(self, source: str) -> float:
        """About how many seconds this sentence takes by itself: its passes times one that is timed. 0.0 for one that
        :meth:`translate` cannot translate."""
        (read,) = self._all([source], None)  # the first passes are slower: they are not timed
        if not read.canvas:
            return 0.0
        began = time.perf_counter()
        self._all([source], None, lengths=[read.canvas])
        steps = min(self.steps, read.canvas) - 1  # the first has been read
        return (len(read.readings) + steps) * (time.perf_counter() - began)

    def fitted(
        self,
        method: str,
        train: Iterable[tuple[str, str]],
        dev: Iterable[tuple[str, str]] | None = None,
        **settings: Any,
    ) -> Self:
        """The same translator with a length method that is fitted to pairs (source, target), such as ``ev_fit``.

        ``method``: its name, or ``module:Class``; ``settings`` are its fields. ``train``: how long translations are is
        measured on all of them, confidences on the first ones. ``dev``: pairs that the adapter has not seen, for a
        method that learns. The method can be pickled. Raises InputError for what is no pair of texts, and as
        :func:`.make_method` does.
        """
        fitted = make_method(method, settings)
        if parts := declared(fitted, "uses_statistics"):
            measured = self._pairs("train", train).statistics(parts, LengthStatisticsSection().bias_pairs)
            fitted = make_method(method, settings, LengthStatistics.of(measured))
        if declared(fitted, "learns"):
            if dev is None:
                remedy = "Give dev=: pairs that the adapter has not seen."
                raise InputError(f"length method {method!r}", "learns from development pairs", remedy)
            fitted, _ = self._pairs("dev", dev).taught(fitted)
        return dataclasses.replace(self, method=fitted)

    def _pairs(self, place: str, given: Iterable[tuple[str, str]]) -> Pairs:
        rows: list[dict[str, Any]] = []
        for number, pair in enumerate(given, 1):
            texts = [] if isinstance(pair, str) else [text for text in pair if isinstance(text, str)]
            if len(texts) != 2:
                problem = f"pair {number} is {brief(pair, 60)}, not two texts"
                raise InputError(place, problem, "Give (source, target) pairs.")
            source, target = (checked_sentence(f"{place}, pair {number}", text) for text in texts)
            rows.append({"id": number, "source": source, "target": target})
        # Methods learn from exact readings.
        return Pairs(dataclasses.replace(self._sentences(place, rows), cache=None), self._runner)

    def _all(
        self,
        sources: Iterable[str],
        denoising: Denoising | None,
        skip: bool = True,
        place: str = "sources",
        names: Sequence[object] = (),
        lengths: Iterable[int] | None = None,
        shows_progress: bool = False,
    ) -> list[Translation]:
        if isinstance(sources, str):
            raise InputError(place, "a single text, which would be read letter by letter", "Give a list: [text].")
        sources = list(sources)
        names = names or range(1, len(sources) + 1)
        slots = _slots(lengths, len(sources))
        translations, places = [Translation("")] * len(sources), []
        for number, (name, source) in enumerate(zip(names, sources, strict=True)):
            problem = _impossible(source, place, name)
            if problem and not skip:
                raise problem
            if problem:
                translations[number] = Translation("", problem=problem)
            elif source.strip():
                places.append(number)
        rows = [{"id": names[number], "source": sources[number]} for number in places]
        sentences = self._sentences(place, rows)
        seen = sentences.seen_by(self.method, self._predicted(sentences) if lengths is None else ())
        works = []
        for index, (number, sentence) in enumerate(zip(places, seen, strict=True)):
            work = self._work(sentences, index, sentence, slots[number], denoising)
            works.append((number, caught(work, lambda error: Translation("", problem=error)) if skip else work))
        done: Iterable[tuple[int, Translation]] = self._runner.run(works, denoising.order if denoising else None)
        for number, translation in progress(done, len(works), "translate", "sentence") if shows_progress else done:
            translations[number] = translation
        return translations

    def _work(
        self, sentences: Sentences, place: int, sentence: Sentence, slots: int | None, denoising: Denoising | None
    ) -> Work:
        """Choose a canvas unless its slots are given, read it where the method has not, and denoise it from this
        reading."""
        row, readings = yield from sentences.choosing(self.method, place, sentence, slots)
        if row["length"] not in readings:
            (readings[row["length"]],) = yield [sentences.probe(place, row["length"])]
        if denoising is None:
            return Translation.of(row, readings)
        best = winner((yield from sentences.denoising(place, row, denoising, readings)))
        return Translation.of(row, readings, self.prompt.text(sentences.written(best)), best)

    def _sentences(self, place: str, rows: Sequence[dict[str, Any]]) -> Sentences:
        context, mask = self.backbone.context, self.backbone.mask_id
        return Sentences(place, rows, self.prompt, context, self.cache, self._turn_end, mask)

    @functools.cached_property
    def _turn_end(self) -> int | None:
        return self.backbone.family.turn_end_id(self.prompt.tokenizer)

    @functools.cached_property
    def _engine(self) -> Engine:
        return self.engine or Engine(self.backbone, reveals_masks=self.mask_token)

    @property
    def _runner(self) -> Runner:
        """Without a store: every request is computed."""
        return Runner(lambda: self._engine, self._engine.ledger)

    def _predicted(self, sentences: Sentences) -> list[dict[int, float] | None]:
        """What the length head says of each prompt, None of one that does not fit into the context; nothing for a
        method that uses none."""
        if not declared(self.method, "uses_length_head"):
            return []
        if self.length_head is None:
            raise InputError("length method", "needs a length head", "Give length_head=, of lengths.length_head.fit.")
        places = range(len(sentences.rows))
        fitting = [place for place in places if sentences.fits(place, 1)]
        pairs = predictions(self.length_head, self._engine, [sentences.prompts[place] for place in fitting])
        predicted = {fitting[index]: lengths for index, lengths in pairs}
        return [predicted.get(place) for place in places]


def _length_method(
    method: str | type[LengthMethod] | LengthMethod, ratios: float | Sequence[float] | None
) -> LengthMethod:
    """A length method by its name or class, with its usual settings and perhaps ratios. Raises InputError for one that
    needs more than these."""
    given = ratios is not None
    if isinstance(method, type):
        method = f"{method.__module__}:{method.__qualname__}"
    if not isinstance(method, str):
        if given:
            raise InputError("ratios", "the length method has its own", "Leave them out, or give its class.")
        return method
    kind, place = find_method(method, {}), f"length method {method!r}"
    if declared(kind, "uses_statistics"):
        remedy = f"Load it with another method, and then take .fitted({method!r}, train, dev)."
        raise InputError(place, "is fitted to training pairs", remedy)
    if not given and "ratios" in getattr(kind, "model_fields", {}):
        problem = "needs ratios: slots of the canvas for each token of the source"
        remedy = 'Give ratios=; entropy_valley.released("en-zh") has those that the paper tries for a direction.'
        raise InputError(place, problem, remedy)
    return make_method(method, {"ratios": ratios} if given else {})


def _slots(lengths: Iterable[int] | None, sentences: int) -> Sequence[int | None]:
    """Lengths that are given, as integers, or None for each sentence; raises InputError unless they are one of 1 or
    more for each."""
    if lengths is None:
        return [None] * sentences
    try:
        slots = [operator.index(length) for length in lengths]
    except TypeError:
        slots = []
    if len(slots) != sentences or min(slots, default=1) < 1:
        remedy = "Give a list with a whole number of 1 or more for each sentence."
        raise InputError("lengths", f"{brief(lengths, 60)} for {counted(sentences, 'sentence')}", remedy)
    return slots


def _impossible(source: object, place: str, name: object) -> SentenceError | None:
    """The error for a sentence that has what no text has, see :func:`.checked_sentence`, or several lines. Raises
    InputError for what is no text at all."""
    if not isinstance(source, str):
        raise InputError(place, f"sentence {name!r} is {brief(source, 60)}, not a text", "Give a list of texts.")
    try:
        if checked_sentence(place, source) and (line_break := re.search("[\r\n]", source)):
            problem = f"a line break (U+{ord(line_break[0]):04X})"
            raise InputError(place, problem, "Give each line as a sentence, without its end.")
    except InputError as error:
        return SentenceError(place, f"sentence {name!r}: {error.problem}", error.remedy)
    return None


@dataclass(frozen=True)
class TypicalEntropy:
    """The highest entropy of so many development sentences, see :attr:`Translation.entropy`; None: there are none.

    A sentence like these is above all of n of them with a probability of 1 / (n + 1), whatever their distribution is.
    """

    highest: float | None = None
    sentences: int = 0

    @classmethod
    def of(cls, translator: Translator, sources: Sequence[str], file: str = "sources") -> Self:
        """Measured on the first sentences of a file, which errors name by their lines; no canvas is denoised."""
        first = sources[:SENTENCES]
        measured = translator.entropies(first, [f"{file}:{number}" for number, _ in enumerate(first, 1)])
        entropies = [entropy for entropy in measured if entropy is not None]
        return cls(max(entropies), len(entropies)) if entropies else cls()

    def hints(self, translator: Translator, source: str, translation: Translation) -> list[str]:
        """What to say of a sentence and its translation; nothing of most."""
        entropy, hints = translation.entropy, []
        if entropy is not None and self.highest is not None and entropy > self.highest:
            hints.append(
                f"entropy {entropy:.3g}, but at most {self.highest:.3g} in {self.sentences} development sentences: it "
                "may be unlike what the adapter was trained on"
            )
        unknown = getattr(translator.prompt.tokenizer, "unk_token_id", None)  # one of bytes has none
        if unknown is not None and unknown in translator.prompt.tokens(source):
            hints.append("has characters that the tokenizer does not know")
        return hints
