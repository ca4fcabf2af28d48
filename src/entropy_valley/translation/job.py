"""From the rows of a test set to translations: the prompts, the pipeline, and what all jobs on a model share.

:class:`Inputs` are the prompts of some sentences. :class:`Pipeline` is the one way from prompts to translations for all
who decode: the workflow's jobs, the library, the latency benchmark and ``benchmarks/``. :class:`ModelJob` is a job of
the workflow on a run's model: its spec, the store, the ledger, and the model, which is loaded when it must. What a job
knows without the weights is read in milliseconds: one with nothing to compute never imports torch.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib.metadata
import itertools
import random
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import TypeAdapter

from entropy_valley import files
from entropy_valley.decoding.orders import Denoising, Draft, looks_at_anchors, reveals_masks
from entropy_valley.decoding.prompts import NO_CACHE, CachePolicy
from entropy_valley.decoding.requests import (
    SHORTEST,
    Finished,
    Gain,
    Ledger,
    Memo,
    Probe,
    ProbeResult,
    Runner,
    anchored,
    gains,
)
from entropy_valley.errors import InputError, SentenceError
from entropy_valley.lengths.base import choosing, declared, probing
from entropy_valley.machine import device_name
from entropy_valley.model.adapters import FACTS, adapter_digest
from entropy_valley.model.checkpoint import MANIFEST, checkpoint_digest, config_arguments
from entropy_valley.model.families import find_family
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX, Prompt, attention_of, load_tokenizer, turn_end_id
from entropy_valley.progress import progress
from entropy_valley.results import Record, made
from entropy_valley.store import Store

if TYPE_CHECKING:
    from entropy_valley.decoding.engine import Engine
    from entropy_valley.decoding.requests import Decoded, Request, Work
    from entropy_valley.lengths import LengthMethod, Sentence
    from entropy_valley.model.load import Backbone

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
        return cls(file, names, [encode(one) for one in sources], encode(""), context, sources, aligned, texts)

    @functools.cached_property
    def distractors(self) -> list[int]:
        """For each place that of the sentence whose prompt a SIG compares with it."""
        return distractors(self.sources)

    def anchors(self, place: int) -> Sequence[int]:
        """The slots that are aligned with the source; raise InputError where no alignment is given."""
        slots = self.aligned[place] if self.aligned else None
        if slots is None:
            problem = f"sentence {self.names[place]!r} has no `anchors`, which the order oracle_anchor reveals first"
            raise InputError(self.file, problem, "Give the test set's source a file of `anchors`.")
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
        works = ((place, self._both(method, place, one, denoising)) for place, one in sentences.items())
        return self.runner.run(works, denoising.order)

    def _both(self, method: LengthMethod, place: int, sentence: Sentence, denoising: Denoising) -> Work:
        probes: dict[int, ProbeResult] = {}
        row = yield from self.choosing(method, place, sentence, probes)
        readings = {} if declared(method, "draft_steps") else probes
        return row, (yield from self.denoising(place, row, denoising, readings))

    def probing(self, method: LengthMethod, place: int, sentence: Sentence) -> Work:
        """The work that returns the readings of the canvases that a method proposes, by length. They are exact."""
        probes: dict[int, ProbeResult] = {}

        def probe(length: int) -> Probe:
            self.inputs.check(place, length)
            return Probe(self.inputs.prompts[place], length)

        yield from probing(method, sentence, probe, probes, self.inputs.names[place])
        return probes

    def choosing(self, method: LengthMethod, place: int, sentence: Sentence, probes: dict[int, ProbeResult]) -> Work:
        """The work of one sentence up to its :func:`~entropy_valley.lengths.base.canvas_row`; ``probes`` takes the
        readings.

        The row has the number of probes that did not compute the prompt as ``cached``, if there are any.
        """
        steps, prompt = declared(method, "draft_steps"), self.inputs.prompts[place]
        probed: list[int] = []

        def probe(length: int) -> Probe | Draft:
            self.inputs.check(place, length)
            probed.append(length)
            if steps:
                return Draft(prompt, length, steps)
            return Probe(prompt, length, reuse=self.cache.of_probe(probed))

        row = yield from choosing(method, sentence, probe, probes, self.inputs.names[place])
        self.inputs.check(place, row["length"])
        cached = 0 if steps else self.cache.saved(range(len(probed)))
        return {**row, "cached": cached} if cached else row

    def denoising(self, place: int, row: Row, denoising: Denoising, probes: Mapping[int, ProbeResult]) -> Work:
        """The work on one sentence's canvas row: what is decoded for it, by the number of masks at the start.

        ``probes`` is what is known of its all-mask canvases; with a ``cache`` they are not exact, and not used.
        """
        probes = probes if self.cache.is_exact else {}
        lengths, prompt, sourceless = contenders(row), self.inputs.prompts[place], self.inputs.sourceless
        names = self.inputs.names
        for length in lengths:
            self.inputs.check(place, length)
        room = self.inputs.room(place)
        gained: dict[int, Gain] = {}
        if denoising.looks_at_distractor:
            probes, gained = yield from self._gains(place, lengths, probes)
        elif looks_at_anchors(denoising.order):
            gained = {length: anchored(self.inputs.anchors(place), length) for length in lengths}
        cases = ((length, probes.get(length), gained.get(length)) for length in lengths)
        decoded = yield [
            denoising.request(prompt, sourceless, length, room, start, gain, sentence=names[place], cache=self.cache)
            for length, start, gain in cases
        ]
        if row.get("rescoring") and len(lengths) > 1:
            decoded = yield from self._rescored(prompt, decoded, denoising)
        return dict(zip(lengths, decoded, strict=True))

    def _rescored(
        self, prompt: Sequence[int], decoded: Sequence[Decoded], denoising: Denoising
    ) -> Generator[Sequence[Request], list[Any], list[Decoded]]:
        """The same, with the log-probability of the finished text in place of that at reveal time."""
        written = self.inputs.texts
        if written is None:
            raise ValueError("a finished text is to be scored, and these inputs have no tokenizer")
        texts = [written.prompt.tokens(written.text(one)) for one in decoded]
        pairs = zip(texts, decoded, strict=True)
        scores = yield [Finished(prompt, text, len(one.tokens), denoising.mask_token) for text, one in pairs]
        return [dataclasses.replace(one, logprob=its.logprob) for one, its in zip(decoded, scores, strict=True)]

    def _gains(
        self, place: int, lengths: Sequence[int], probes: Mapping[int, ProbeResult]
    ) -> Generator[Sequence[Request], list[Any], tuple[dict[int, ProbeResult], dict[int, Gain]]]:
        """The readings of canvases of these lengths, those that are known included, and the SIG of their slots."""
        inputs, missing = self.inputs, [length for length in lengths if length not in probes]
        other = inputs.distractors[place]
        for length in lengths:
            inputs.check(other, length)
        canvases = [(place, length) for length in missing] + [(other, length) for length in lengths]
        readings = yield [Probe(inputs.prompts[one], length) for one, length in canvases]
        own = {**probes, **dict(zip(missing, readings, strict=False))}
        pairs = zip(lengths, readings[len(missing) :], strict=True)
        return own, {length: Gain(inputs.prompts[other], gains(own[length], it)) for length, it in pairs}


def contenders(canvas: Mapping[str, Any]) -> list[int]:
    """The lengths that are decoded for a canvas row: its own, unless it names several."""
    return canvas.get("contenders") or [canvas["length"]]


def winner(decoded: Mapping[int, Decoded]) -> Decoded:
    """Of canvases decoded from so many masks the one of the largest mean log-probability, at reveal time or rescored.

    The shorter one on a tie in the decimals that it has; an empty text, which has no log-probability, comes last.
    """
    return min(decoded.items(), key=lambda item: (item[1].logprob is None, -(item[1].logprob or 0.0), item[0]))[1]


# --- A job on a run's model.

# In signatures and keys; what is usual goes unsaid.
UNMERGED, FLOAT32_HEAD, MASKS = "adapter unmerged", "float32 head", "reveals masks"
PREFIX_ATTENTION, COMPILED_LAYERS = "prefix attention", "compiled layers"
# Tokens of a padded pass, unless a job says otherwise: enough to keep a GPU busy, and few in the nearly empty passes at
# the end of a stream.
TOKENS = {"cpu": 1024, "cuda": 4096}
ROW = ("id", "source", "target")  # what a row of a test set has
PAIRS = ("train.jsonl", "dev.jsonl")  # of a corpus
Compute = Callable[[Sequence[int]], Iterator[tuple[int, Any]]]


@dataclass(frozen=True)
class Identity:
    """A backbone's prompt and context, and the digests that name it and its adapter (None: the bare backbone).

    ``turn_end`` is the id of the token that ends a turn of its chats, ``mask`` that of the mask token; None: it has
    none.
    """

    prompt: Prompt
    context: int
    backbone_digest: str
    adapter_digest: str | None = None
    turn_end: int | None = None
    mask: int | None = None

    @property
    def texts(self) -> Texts:
        return Texts(self.prompt, self.turn_end, self.mask)

    @property
    def digest(self) -> str:
        """One name of backbone and adapter together."""
        return files.digest([self.backbone_digest, self.adapter_digest])


def read_identity(
    backbone: Path, adapter: Path | None, family: str, template: str, bos: bool, attention: str = BOTH_WAYS
) -> Identity:
    """Read tokenizer, context and digests from the folders of a backbone and its adapter; no tensor is touched
    but those of an adapter that has no ``adapter.json``.

    Raises InputError for an adapter of another backbone or attention, and for a BOS that the tokenizer has not.
    """
    kind = find_family(family)
    digest = checkpoint_digest(backbone)
    context = config_arguments(backbone, kind)["max_position_embeddings"]
    tokenizer = load_tokenizer(backbone, kind)
    vocabulary = tokenizer.get_vocab()
    start = vocabulary.get(kind.bos_token or "") if bos else None
    if bos and start is None:
        remedy = "Set the backbone's bos: false."
        raise InputError(backbone, f"the tokenizer has no BOS token {kind.bos_token!r}", remedy)
    prompt = Prompt(template, tokenizer, start)
    given = adapter_digest(adapter, kind, digest, attention) if adapter else None
    mask = vocabulary.get(kind.mask_token or "")
    return Identity(prompt, context, digest, given, turn_end_id(tokenizer, kind), mask)


@dataclass(frozen=True)
class Execution:
    """Where a run's model is, and how a job runs it: what rules hand over beside the spec.

    ``backbone`` and ``adapter`` are folders; without an adapter it is the bare backbone. ``corpus`` is the
    folder of the run's training pairs, which fits read. ``store`` keeps finished work for later jobs; None: nothing is
    kept. ``threads`` are of a CPU. ``token_budget`` is the most tokens of a forward pass.
    """

    backbone: Path
    adapter: Path | None = None
    corpus: Path | None = None
    store: Path | None = None
    device: str = "cpu"
    threads: int = 1
    token_budget: int | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any], threads: int = 1) -> Self:
        """From what a rule hands over, whose paths are texts and which may have more."""
        return TypeAdapter(cls).validate_python({**values, "threads": threads})

    @property
    def pairs(self) -> tuple[Path, Path]:
        """The files of training and of development pairs. Raises ValueError where there is no corpus."""
        if self.corpus is None:
            raise ValueError("length methods are fitted to the pairs of a corpus, and there is none")
        train, dev = PAIRS
        return self.corpus / train, self.corpus / dev


class ModelJob:
    """One job on a run's model: its spec, a test set's rows, the checkpoint's identity, the store and the ledger.

    A job of several test sets is :meth:`on` each of them in turn; the model is loaded once for all.
    """

    def __init__(self, spec: Mapping[str, Any], execution: Execution, testset: Path | None = None) -> None:
        self.spec, self.execution, self._started = spec, execution, time.monotonic()
        self.attention = attention_of(spec)
        self.identity = read_identity(
            execution.backbone, execution.adapter, spec["family"], spec["prompt"], spec["bos"], self.attention
        )
        self.rows: list[dict[str, Any]] = files.read_jsonl(testset, ROW) if testset else []
        self.testset = testset
        self.precision: str = spec["precision"]
        self.merge: bool = spec.get("merge_adapter", True)
        self.fill = padded_tokens(spec, execution.device, execution.token_budget)
        self.store = Store(execution.store)
        self.ledger = Ledger()
        self._model = functools.cache(self._load)  # one for all jobs that are made of this one

    @functools.cached_property
    def model_numerics(self) -> str:
        """What a value depends on beside the checkpoint: the rows that are read, and how device and torch round."""
        rows = "shifted" if self.spec["shifted"] else "unshifted"
        unmerged = [UNMERGED] if self.execution.adapter and not self.merge else []
        torch = f"torch {importlib.metadata.version('torch')}"
        return "|".join([rows, self.precision, device_name(self.execution.device), torch, *unmerged, *self._prefix])

    @property
    def data_digest(self) -> str:
        """That of the file of the rows. Raises ValueError where they are of none."""
        if self.testset is None:
            raise ValueError("the rows of this job are of no file")
        return files.file_digest(self.testset)

    @property
    def numerics(self) -> str:
        """The same of what the engine computes: its modes, too."""
        modes = [*self._modes, *([f"batch-invariant {self.fill}"] if self.fill else [])]
        return "|".join([self.model_numerics, *modes])

    @property
    def _prefix(self) -> list[str]:
        return [PREFIX_ATTENTION] if self.attention == PREFIX else []

    @property
    def _modes(self) -> list[str]:
        """What is unusual in how canvases are filled."""
        modes = {FLOAT32_HEAD: self.spec.get("head_precision") == "float32"}
        modes |= {MASKS: self.reveals_masks, COMPILED_LAYERS: self.compiles}
        return [mode for mode, has in modes.items() if has]

    @property
    def reveals_masks(self) -> bool:
        """Whether a slot may be revealed as a mask."""
        return reveals_masks(self.spec)

    @property
    def compiles(self) -> bool:
        """Whether the layers of its passes are compiled: only padded passes have one shape."""
        return bool(self.fill) and self.spec.get("compile_layers", False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: Any) -> None:
        self.store.__exit__(*failure)

    def on(self, rows: list[dict[str, Any]], testset: Path | None = None) -> Self:
        """The same job on other rows, perhaps of another file; the model is loaded once for both."""
        other = copy.copy(self)
        for of_rows in ("backbone", "engine", "inputs"):
            vars(other).pop(of_rows, None)
        other.rows, other.testset = rows, testset or self.testset
        return other

    def with_spec(self, spec: Mapping[str, Any], store: Store | None = None) -> Self:
        """A job with another spec on the same rows and model, and with another store if one is given."""
        other = copy.copy(self)
        other.spec, other.store = spec, self.store if store is None else store
        return other

    @functools.cached_property
    def inputs(self) -> Inputs:
        """The prompts of the rows, which are read at the first use."""
        known, rows = self.identity, self.rows
        names, sources = [row["id"] for row in rows], [row["source"] for row in rows]
        spans = [row.get("anchors") for row in rows]
        aligned = [one and known.prompt.slots_of(row["target"], one) for row, one in zip(rows, spans, strict=True)]
        return Inputs.of(self.testset, names, sources, known.texts, known.context, aligned)

    @functools.cached_property
    def backbone(self) -> Backbone:
        """The model, loaded at its first use: a job with nothing to compute never imports torch."""
        return self._model()

    def _load(self) -> Backbone:
        import torch

        from entropy_valley.model.load import load_backbone

        torch.set_num_threads(self.execution.threads)
        self.ledger.count(loads=1)
        return load_backbone(
            self.execution.backbone,
            self.spec["family"],
            device=self.execution.device,
            dtype=self.spec["precision"],
            adapter=self.execution.adapter,
            merge=self.merge,
            shifted=self.spec["shifted"],
            float32_head=self.spec.get("head_precision") == "float32",
            attention=self.attention,
        )

    @functools.cached_property
    def engine(self) -> Engine:
        """The exact decoder of canvases, on the model."""
        from entropy_valley.decoding.engine import Engine

        modes = self.fill, self.reveals_masks, self.compiles
        return Engine(self.backbone, self.ledger, self.execution.token_budget, *modes)

    def runner(self, bar: str) -> Runner:
        """Work on this job's sentences, through its store; ``bar`` names the results in errors and the progress bar."""
        memo = Memo(self.store, self.identity.digest, self.numerics)
        return Runner(lambda: self.engine, self.ledger, memo, bar)

    def probe(self, canvases: Sequence[tuple[int, int]]) -> list[ProbeResult]:
        """The reading of each all-mask canvas, named by (row of the test set, slots); the model is loaded at a miss.

        Raises InputError if a canvas exceeds the context.
        """
        return self.runner("probe").answers(self._probes(canvases))

    def slot_sigs(self, canvases: Sequence[tuple[int, int]], sig: str) -> list[tuple[float, ...]]:
        """The SIG of each slot (nats) of each of these canvases, of the kind that an order's ``sig`` names: one probe
        with a ``stepwise_kl``, or two, the second behind the sentence's distractor."""
        runner = self.runner("sig")
        if sig == "stepwise_kl":
            return [reading.sigs for reading in runner.answers(self._probes(canvases, self.inputs.sourceless))]
        pairs = [((place, length), (self.inputs.distractors[place], length)) for place, length in canvases]
        readings = runner.answers(self._probes([canvas for pair in pairs for canvas in pair]))
        return list(map(gains, readings[::2], readings[1::2]))

    def _probes(self, canvases: Sequence[tuple[int, int]], sourceless: Sequence[int] | None = None) -> list[Probe]:
        for place, length in canvases:
            self.inputs.check(place, length)
        return [Probe(self.inputs.prompts[place], length, sourceless) for place, length in canvases]

    def signature(self, *decoder: str) -> dict[str, Any]:
        """What hypotheses depend on beside the data: the decoder, by its parts, the backbone and the adapter."""
        return {
            "decoder": "|".join([*decoder, *[UNMERGED] * (not self.merge), *self._prefix, *self._modes]),
            "backbone_digest": self.identity.backbone_digest,
            "adapter_digest": self.identity.adapter_digest,
            "shifted": self.spec["shifted"],
        }

    def recall(self, what: str, keys: Sequence[str], compute: Compute) -> list[Any]:
        """The value of each key: from the store, or computed once and put there as soon as it is finished.

        ``compute`` gets the places of the missing keys and yields (place, JSON value) in any order.
        """
        values = {key: value for key in dict.fromkeys(keys) if (value := self.store.get(key)) is not None}
        first_places = {key: place for place, key in reversed(list(enumerate(keys)))}
        missing = [place for key, place in first_places.items() if key not in values]
        self.ledger.count(requested=len(keys), computed=len(missing))
        if missing:
            with progress(total=len(missing), description=what, unit="result") as bar:
                for place, value in compute(missing):
                    self.store.put(keys[place], value)
                    values[keys[place]] = value
                    bar.update()
        return [values[key] for key in keys]

    @contextlib.contextmanager
    def made(
        self, rule: str, params: Any, read: Sequence[str | Path], written: Sequence[str | Path]
    ) -> Iterator[Record]:
        """Keep the record of what the block makes of these files, the backbone and the adapter."""
        backbone, adapter = self.execution.backbone, self.execution.adapter
        folders: dict[str | Path, str | None] = {backbone: self.identity.backbone_digest}
        described = [backbone / MANIFEST]
        if adapter:
            folders[adapter] = self.identity.adapter_digest
            described.append(adapter / FACTS)
        inputs = [*read, *filter(Path.is_file, described)]
        with made(rule, params, inputs, written, digests=folders) as record:
            yield record
            record.facts["codes"] = sorted({*record.facts["codes"], *self.store.codes})

    def report(self, what: str) -> None:
        """Say on stderr how much was asked for, shared and computed."""
        sys.stderr.write(f"{what}: {self.ledger.text()}; {time.monotonic() - self._started:.1f} s\n")


def padded_tokens(spec: Mapping[str, Any], device: str, budget: int | None) -> int | None:
    """Tokens of each pass of a job that pads them (``decoding.batch_invariant``; ``auto``: on GPUs); None: it pads
    none. ``budget`` is what its command line says."""
    kind, setting = device.partition(":")[0], spec.get("batch_invariant", "auto")
    pads = kind == "cuda" if setting == "auto" else setting
    return (budget or TOKENS[kind]) if pads else None
