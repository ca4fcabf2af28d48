"""The translations of a set of cells: one job loads a run's model once, and translates with every cell.

First come the fits that length methods use. Then one stream of passes has the probes of all methods and test sets. Then
each reveal order has a stream, for all methods, test sets and step budgets; variable-length decoders join the first.
Each result goes into the store as soon as it is there, so that a repeated job computes only what is new, and loads no
model where nothing is. The rows are made of the same results.

At the end: what a translation costs, as the paper counts it, and as the engine runs it for the sentence by itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from entropy_valley import errors, files, results
from entropy_valley.decoding.orders import DecodedVariableLength, Denoising, needs_sourceless
from entropy_valley.decoding.prompts import NO_CACHE, CachePolicy
from entropy_valley.errors import InputError
from entropy_valley.lengths import find_method
from entropy_valley.lengths.base import FITTED, declared, sentences_of
from entropy_valley.lengths.baselines import reassign
from entropy_valley.model.prompt import PREFIX
from entropy_valley.results import REMEDY, Record, System, differences, read_record, record_path
from entropy_valley.revisions import DECODING
from entropy_valley.translation import beam_search
from entropy_valley.translation.fits import Fits, predict
from entropy_valley.translation.job import ROW, Execution, ModelJob, Pipeline, Row, contenders, winner

if TYPE_CHECKING:
    from entropy_valley.decoding.engine import Engine
    from entropy_valley.decoding.requests import Decoded, Runner, Work


# What a spec has beside the params of the run's passes.
OF_SET = ("cells", "methods", "orders", "schedule", "fits", "made_from")

Rows = dict[System, list[Row]]

Choice = tuple[str, str]  # a test set and a length method


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts of every test set: the sentences whose place, divided by it, leaves ``number``."""

    number: int = 0
    count: int = 1

    @classmethod
    def named(cls, name: str) -> Self:
        """From ``0of2``; raises ValueError for another text."""
        number, count = map(int, name.split("of"))
        if not 0 <= number < count:
            raise ValueError(f"no shard {name}")
        return cls(number, count)

    def has(self, place: int) -> bool:
        return place % self.count == self.number


def write(
    params: Mapping[str, Any], execution: Execution, testsets: Sequence[str], out: str, shards: Sequence[str] = ()
) -> None:
    """Write the rows of a set and its header: from the model, or, without one, from what its ``shards`` have written.

    ``params`` are those of the rule, ``testsets`` the files of its test sets. Raises InputError, and writes nothing,
    where a cell has failed; by then all others are in the store.
    """
    if shards:
        execution = dataclasses.replace(execution, store=None)
    work = Translations(params, execution, testsets)
    inputs = [*testsets, *(shards or work.corpus)]
    with work.job, work.job.made("translate", params, inputs, [out]) as record:
        rows = work.merged(shards, record.inputs) if shards else work.rows()
        files.write_jsonl(out, results.tidy(rows))
        record.facts["cells"] = [work.entry(cell, of_cell) for cell, of_cell in rows.items()]
        fits = shard_record(Path(shards[0])).facts.get("fits") if shards else work.fits.facts  # all have the same
        record.facts.update({"fits": fits} if fits else {})
        work.job.report("translate")


def write_shard(params: Mapping[str, Any], execution: Execution, testsets: Sequence[str], out: str) -> None:
    """Write the rows of the sentences of one shard, by which the file is named: ``0of2.jsonl``."""
    work = Translations(params, execution, testsets, Shard.named(Path(out).stem))
    with work.job, work.job.made("shard", params, [*testsets, *work.corpus], [out]) as record:
        files.write_jsonl(out, results.tidy(work.rows()))
        record.facts.update({"fits": work.fits.facts} if work.fits.facts else {})
        work.job.report("shard")


def shard_record(path: Path) -> Record:
    """The record of a shard; raises InputError where it has none."""
    record = read_record(record_path(path))
    if record is None:
        raise InputError(path, "has no record of what it was made from", REMEDY)
    return record


class Translations:
    """What the job of a set does. ``params`` are those of its rule; ``testsets`` are files named by their test set.

    ``failures`` has, by cell or by test set and length method, what kept them from being translated: it keeps no other
    cell from it.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        execution: Execution,
        testsets: Sequence[str | Path],
        shard: Shard | None = None,
    ) -> None:
        self.spec, self.shard = params, shard or Shard()
        self.cells = [System(*cell) for cell in params["cells"]]
        self.base = {key: value for key, value in params.items() if key not in OF_SET}
        self.job = ModelJob(self.base, execution)
        paths = map(Path, testsets)
        self.tests = {path.stem: self.job.on(files.read_jsonl(path, ROW), path) for path in paths}
        self.fits, self.failures = Fits(), dict[str, Exception]()
        self._unfit: InputError | None = None
        self._canvases: dict[Choice, dict[int, Row]] = {}  # by the sentence's place
        self._rows: dict[System, dict[int, Row]] = {cell: {} for cell in self.cells}

    @property
    def corpus(self) -> Sequence[Path]:
        """The files of pairs that fits read, if there are any."""
        return self.job.execution.pairs if self.spec.get("fits") else ()

    def rows(self) -> Rows:
        """The rows of each cell, in the order of the test set, or of the shard's part of it.

        Raises InputError when all is done that can be done, and tells before what has failed.
        """
        if self.cells[0].order:
            self.choose()
            self._decode()
        else:
            self._generate()
        for label, error in self.failures.items():
            errors.tell(error, f"error: {label}: ")
        if self.failures:
            problem = f"not written: {errors.listed(list(self.failures))} failed"
            raise InputError("translations", problem, "The lines above say why. What was computed is in the store.")
        return {cell: [rows[place] for place in sorted(rows)] for cell, rows in self._rows.items()}

    def merged(self, shards: Sequence[str], inputs: Mapping[str, str]) -> Rows:
        """The rows of each cell from the files of all shards, the first shard's first; ``inputs`` has the digests of
        what this job reads.

        Raises InputError for a shard of other params, inputs or content, or of other sentences than are due.
        """
        others = {path: digest for path, digest in inputs.items() if path not in map(str, shards)}
        for path in map(Path, shards):
            self._require_shard(path, others)
        rows: Rows = {cell: [{}] * len(self.tests[cell.testset].rows) for cell in self.cells}
        most = max(map(len, rows.values()))  # with fewer sentences than shards, the last are empty
        for number, shard in enumerate(shards[:most]):
            parts = results.systems(shard)
            for cell in self.cells:
                part, due = parts.get(cell, []), self.tests[cell.testset].rows[number :: len(shards)]
                for one, other in itertools.zip_longest(part, due, fillvalue={"id": "no sentence"}):
                    if one["id"] != other["id"]:
                        problem = f"{cell.label}: id {one['id']!r} where {other['id']!r} is due"
                        raise InputError(shard, problem, REMEDY)
                rows[cell][number :: len(shards)] = part
        return rows

    def _require_shard(self, path: Path, inputs: Mapping[str, str]) -> None:
        """Raise InputError unless the record of a shard, whose content is what it says, has these params and inputs."""
        record = shard_record(path)
        for change in differences(record.params, self.spec):
            raise InputError(path, f"was made with other params: {change}", REMEDY)
        for read, digest in inputs.items():
            if digest not in record.inputs.values():
                raise InputError(path, f"was made from another {Path(read).name} than {read}", REMEDY)
        if record.rule != "shard" or path.name not in record.outputs:
            raise InputError(path, f"is not the file that its record {record_path(path).name} describes", REMEDY)

    def entry(self, cell: System, rows: Sequence[Row]) -> dict[str, Any]:
        """What the header says of a cell: what its rows depend on beside the data, and their totals."""
        job = self.tests[cell.testset]
        if cell.order:
            denoising = self._denoising_of(cell)
            signed, totals = signature(job, denoising), summary(job, rows, denoising)
        else:
            search = beam_search.search_of(self.base)
            signed, totals = beam_search.signature(job, search), beam_search.summary(rows)
        return {**cell._asdict(), "signature": {**signed, "data_digest": job.data_digest}, **totals}

    # Canvases.

    def choose(self) -> dict[Choice, dict[int, Row]]:
        """The canvas rows of each choice, by the sentence's place: those of all methods are probed in one stream, and
        reassigned ones are reassigned from others."""
        try:
            if specs := self.spec.get("fits"):
                self.fits = Fits.of(self.job, specs)
        except InputError as error:
            self._unfit = error  # of each method that needs them
        runner, choices = self._runner("probe"), self._choices()
        origins = {choice: (choice[0], method) for choice in choices if (method := self._origin(choice[1]))}
        # Ratios are reassigned among all sentences: every shard chooses the canvases that they come from for all.
        every = set(origins.values())
        works = [
            work
            for choice in choices
            if choice not in origins
            for work in self._choosing(runner, choice, choice in every)
        ]
        for (choice, place), row in runner.run(works):
            if row:
                self._canvases[choice][place] = row
        for choice, origin in origins.items():
            self._reassign(choice, origin)
        return self._canvases

    def _choices(self) -> list[Choice]:
        """Those of the cells, and those whose canvases some of them reassign."""
        choices: dict[Choice, None] = {}
        for cell in self.cells:
            if origin := self._origin(cell.method):
                choices[cell.testset, origin] = None
            choices[cell.testset, cell.method] = None
        return list(choices)

    def _origin(self, method: str) -> str | None:
        """The length method whose canvases this one reassigns to other sentences, if it does."""
        settings = self.spec["methods"][method]
        return settings["of"] if settings.get("method", method) == "reassigned" else None

    def _choosing(self, runner: Runner, choice: Choice, every: bool) -> list[tuple[tuple[Choice, int], Work]]:
        """The work on each sentence of this shard, or on ``every`` one."""
        (testset, method), label = choice, " ".join(choice)
        job, settings = self.tests[testset], self.spec["methods"][method]
        with self._failing(label):
            kind = find_method(method, settings)
            if self._unfit and any(declared(kind, name) for name in FITTED):
                raise self._unfit
            places = [place for place in range(len(job.rows)) if every or self.shard.has(place)]
            length_method = self.fits.method(method, settings)
            part = job.on([job.rows[place] for place in places])
            predicted = predict(part, self.fits.head) if declared(kind, "uses_length_head") and self.fits.head else ()
            sentences = sentences_of(part.rows, job.identity.prompt, length_method, predicted, part.inputs.rooms)
            pipeline, self._canvases[choice] = Pipeline(runner, job.inputs, CachePolicy.of(self.base)), {}
            return [
                ((choice, place), self._guarded(label, pipeline.choosing(length_method, place, one, {})))
                for place, one in zip(places, sentences, strict=True)
            ]
        return []

    def _reassign(self, choice: Choice, origin: Choice) -> None:
        """Give the ratios of the canvases of ``origin`` to other sentences; they have been probed already."""
        testset, method = choice
        if " ".join(origin) in self.failures:
            self.failures[" ".join(choice)] = self.failures[" ".join(origin)]
            return
        job, given = self.tests[testset], self._canvases[origin]
        with self._failing(" ".join(choice)):
            settings, tokens = self.spec["methods"][method], job.identity.prompt.tokens
            lengths = [given[place]["length"] for place in range(len(job.rows))]
            sources = [len(tokens(row["source"])) for row in job.rows]
            reassigned = reassign(lengths, sources, settings["seed"], settings["within"])
            for place, length in enumerate(reassigned):
                job.inputs.check(place, length)
            self._canvases[choice] = {
                place: {"length": length, "candidates": [length], "scores": [], "calls": 0, "slots": 0}
                for place, length in enumerate(reassigned)
            }

    # Texts.

    def _decode(self) -> None:
        """A stream for each reveal order. A user's own order or decoder may fail: it shares none."""
        streams: defaultdict[str | None, dict[System, Denoising]] = defaultdict(dict)
        for cell in self.cells:
            with self._failing(cell.label):
                denoising = self._denoising_of(cell)
                name = files.canonical([denoising.name, denoising.settings])
                streams[name if denoising.order or denoising.is_own else None][cell] = denoising
        variable = streams.pop(None, {})
        ours = next((name for name, stream in streams.items() if not any(one.is_own for one in stream.values())), None)
        for stream in (streams.pop(ours, {}) | variable, *streams.values()):
            order = next((denoising.order for denoising in stream.values()), None)
            with self._failing(*[cell.label for cell, denoising in stream.items() if denoising.is_own]):
                runner = self._runner("decode")
                works = [work for cell, one in stream.items() for work in self._denoising(runner, cell, one)]
                for (cell, place), decoded in runner.run(works, order):
                    if decoded:
                        canvas = self._canvases[cell.testset, cell.method][place]
                        self._rows[cell][place] = row(self.tests[cell.testset], place, canvas, decoded, stream[cell])

    def _denoising_of(self, cell: System) -> Denoising:
        order = self.spec["orders"][cell.order]
        return Denoising.of({**self.base, "schedule": self.spec["schedule"], **order, "steps": cell.steps})

    def _denoising(self, runner: Runner, cell: System, denoising: Denoising) -> list[tuple[tuple[System, int], Work]]:
        if f"{cell.testset} {cell.method}" in self.failures:
            return []
        pipeline = Pipeline(runner, self.tests[cell.testset].inputs, CachePolicy.of(self.base))
        return [
            ((cell, place), self._guarded(cell.label, pipeline.denoising(place, canvas, denoising, {})))
            for place, canvas in self._canvases[cell.testset, cell.method].items()
            if self.shard.has(place)
        ]

    def _generate(self) -> None:
        for cell in self.cells:
            job = self.tests[cell.testset]
            places = [place for place in range(len(job.rows)) if self.shard.has(place)]
            with self._failing(cell.label):
                part = job.on([job.rows[place] for place in places])
                hypotheses = beam_search.translate(part, beam_search.search_of(self.base))
                self._rows[cell] = dict(zip(places, hypotheses, strict=True))

    # What they share.

    def _runner(self, bar: str) -> Runner:
        return dataclasses.replace(self.job.runner(bar), engine=self._engine)

    def _engine(self) -> Engine:
        """The one of any test set: they share the model."""
        return next(iter(self.tests.values())).engine

    def _guarded(self, label: str, work: Work) -> Work:
        """The same work, unless its cell has failed; an error in it, be it of a user's own method, is its cell's
        alone."""
        if label in self.failures:
            return None
        try:
            return (yield from work)
        except Exception as error:
            self.failures.setdefault(label, error)
            return None

    @contextlib.contextmanager
    def _failing(self, *labels: str) -> Iterator[None]:
        """An InputError in the block is that of these labels; without labels it ends the job."""
        try:
            yield
        except InputError as error:
            if not labels:
                raise
            for label in labels:
                self.failures.setdefault(label, error)


def row(job: ModelJob, place: int, canvas: Row, decoded: Mapping[int, Decoded], denoising: Denoising) -> Row:
    """``{id, hypothesis, length, tokens, logprob, …, canvas}`` with the counts of :func:`sentence_costs`.

    ``tokens`` are the ids before the first EOS or end of a turn; ``logprob`` is the mean over those before the EOS.
    Of several contenders all are ``decoded``, and the :func:`winner` is the row's; the counts are of all of them. Where
    a variable-length decoder changes the canvas, ``length`` is the final one.
    """
    best, inputs = winner(decoded), job.inputs
    tokens = job.identity.texts.tokens(best)
    other = inputs.prompts[inputs.distractors[place]] if denoising.looks_at_distractor else inputs.sourceless
    once, cache = job.attention == PREFIX, CachePolicy.of(job.spec)
    prompts = PromptCosts(len(inputs.prompts[place]), len(other), job.spec["shifted"], once, cache)
    return {
        "id": job.rows[place]["id"],
        "hypothesis": job.identity.prompt.text(tokens),
        "length": len(best.tokens),
        "tokens": tokens,
        "logprob": best.logprob,
        **sentence_costs(canvas, prompts, decoded, denoising),
        "canvas": canvas,
    }


def summary(job: ModelJob, rows: Sequence[Row], denoising: Denoising) -> dict[str, float]:
    """Totals over the rows; ``within_steps`` counts the canvases that a larger step budget cannot touch: of a
    variable-length decoder all.

    ``length_mae``: mean distance of the (chosen) canvas from the reference's tokens and its EOS, six decimals.
    ``contenders``: all canvases that were decoded, where any sentence had more than one.
    """
    within = sum(bool(denoising.variable_length) or row["length"] <= denoising.steps for row in rows)
    decoded = sum(len(contenders(row["canvas"])) for row in rows)
    true = [len(job.identity.prompt.tokens(pair["target"])) + 1 for pair in job.rows]
    distances = [abs(row["length"] - length) for row, length in zip(rows, true, strict=True)]
    return {
        "sentences": len(rows),
        "within_steps": within,
        "length_mae": round(sum(distances) / max(1, len(distances)), 6),
        **({"contenders": decoded} if decoded > len(rows) else {}),
        **{name: sum(row[name] for row in rows) for name in COUNTS},
    }


def signature(job: ModelJob, denoising: Denoising) -> dict[str, Any]:
    """What the translations depend on beside the data: the decoder, the backbone and the adapter."""
    engine, cached = f"engine r{DECODING}", CachePolicy.of(job.spec).names
    if denoising.variable_length:
        return job.signature(engine, denoising.label, job.precision, *cached)
    return job.signature(engine, denoising.label, f"T{denoising.steps}", job.precision, denoising.schedule, *cached)


COUNTS = ("calls", "slots", "passes", "run_tokens", "head_rows")


@dataclass(frozen=True)
class PromptCosts:
    """The tokens of the two prompts of a sentence, ``other`` being that without the source or a distractor's, and which
    passes compute them.

    ``once``: the first pass over a prompt computes it for all. ``cache``: of prompts. ``shifted``: slot 0 is read
    from the prompt's last row, which every pass computes.
    """

    source: int
    other: int
    shifted: bool = False
    once: bool = False
    cache: CachePolicy = NO_CACHE

    def rows(self, prompt: int, passes: int, cached: int = 0) -> int:
        """Of a prompt of so many tokens, the rows that ``passes`` compute; ``cached`` take them from another pass."""
        cached = passes - 1 if self.once and passes else cached
        return passes * prompt - cached * (prompt - int(self.shifted))


class _Cost(NamedTuple):
    """Calls and slots of the method; then of the engine: passes over the prompt, and over the ``other`` one, each with
    how many of these are ``cached``; slots and rows of the LM head in all of them; passes that stand ``apart`` and
    compute their prompt."""

    calls: int
    slots: int
    passes: int
    cached: int
    other: int
    other_cached: int
    run_slots: int
    head_rows: int
    apart: int = 0


def sentence_costs(
    canvas: Mapping[str, Any], prompts: PromptCosts, decoded: Mapping[int, Decoded], denoising: Denoising
) -> dict[str, int]:
    """The counts of a canvas row and all that is decoded for it, by the number of masks at the start.

    ``calls`` and ``slots`` are the method's as the paper counts them: probes and T steps, each step over all slots, and
    again over those of the source-free pass where the order looks at it; two passes for a SIG against a distractor. A
    variable-length decoder has the passes that it took, each over the slots of its own canvas. ``passes``,
    ``run_tokens`` and ``head_rows`` are what the engine needs for the sentence by itself: no empty steps, the probe
    reused, nothing once all before the EOS is settled, and of the prompt what ``prompts`` says. A source-free pass is a
    pass, and so is a distractor's. A finished text that is scored takes a pass more, and so does a length head.
    """
    calls, slots = canvas["calls"], canvas["slots"]
    apart = canvas.get("apart", 0 if slots else calls)  # a length head's pass has no slots
    costs = [_Cost(calls, slots, calls - apart, canvas.get("cached", 0), 0, 0, slots, slots, apart)]
    for length, one in decoded.items():
        # Lengths may have been compared without a probe: a canvas row then has no slots.
        probed = bool(slots and canvas["scores"]) and length in canvas["candidates"]
        if isinstance(one, DecodedVariableLength):
            reused, passes = int(probed and prompts.cache.is_exact), one.passes
            run_slots, head_rows = one.slots - reused * length, one.rows - reused * length
            costs.append(_Cost(passes, one.slots, passes - reused, 0, 0, 0, run_slots, head_rows))
        else:
            costs.append(_fixed_length(length, one, denoising, probed, prompts.cache))
        if canvas.get("rescoring") and len(decoded) > 1:
            costs.append(_Cost(1, len(one.tokens), 0, 0, 0, 0, len(one.tokens), len(one.tokens), 1))
    all_of = _Cost(*map(sum, zip(*costs, strict=True)))
    rows = prompts.rows(prompts.source, all_of.passes, all_of.cached)
    rows += prompts.rows(prompts.other, all_of.other, all_of.other_cached)
    run_tokens = rows + all_of.apart * prompts.source + all_of.run_slots
    passes = all_of.passes + all_of.other + all_of.apart
    return dict(zip(COUNTS, (all_of.calls, all_of.slots, passes, run_tokens, all_of.head_rows), strict=True))


def _fixed_length(length: int, decoded: Decoded, denoising: Denoising, probed: bool, cache: CachePolicy) -> _Cost:
    """After the probes: the all-mask pass is not run again where that length was probed and its reading is all that
    the order looks at; the source-free passes of the steps that look at more are run. With a prompt cache all are
    run, and only some compute the prompt. A SIG against a distractor is of exact readings: there that behind the
    source takes a pass of its own too."""
    passes = decoded.passes
    masked, steps = denoising.masked(length, passes), len(denoising.counts(length))
    compared = [needs_sourceless(denoising.order, step, steps) for step in range(passes)]
    reused, distractor = int(probed and not compared[0] and cache.is_exact), int(denoising.looks_at_distractor)
    exact = distractor if denoising.reuse(length, cache).refresh else 0
    others, looking = sum(compared) + distractor, [step for step, looks in enumerate(compared) if looks]
    return _Cost(
        denoising.calls,
        denoising.calls * length,
        passes - reused + exact,
        cache.saved(range(passes)),
        others,
        cache.saved(looking),
        (passes - reused + exact + others) * length,
        sum(masked) + sum(itertools.compress(masked, compared)) + (exact + distractor - reused) * length,
    )
