"""The translations of a set of cells: one job loads a run's model once, and translates with every cell.

First come the fits that length methods use. Then one stream of passes has the probes of all methods and test sets. Then
each reveal order has a stream, for all methods, test sets and step budgets; variable-length decoders join the first.
Each result goes into the store as soon as it is there, so that a repeated job computes only what is new, and loads no
model where nothing is. The rows are made of the same results.
"""

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files, results
from entropy_valley.decoding.canvas import CachePolicy, Decoded
from entropy_valley.decoding.orders import needs_sourceless
from entropy_valley.decoding.requests import DecodedVariableLength, Denoising, Work
from entropy_valley.errors import InputError
from entropy_valley.lengths.base import declared
from entropy_valley.lengths.baselines import reassign
from entropy_valley.model.prompt import PREFIX
from entropy_valley.results import REMEDY, Record, System, differences, read_record, record_path
from entropy_valley.revisions import DECODING
from entropy_valley.settings import JsonObject
from entropy_valley.translation import autoregressive
from entropy_valley.translation.fits import Fits, predict
from entropy_valley.translation.job import Execution, RunModel
from entropy_valley.translation.sentences import Row, Sentences, contenders, winner

Rows = dict[System, list[Row]]

Choice = tuple[str, str]  # a test set and a length method


def write(
    params: JsonObject, execution: Execution, testsets: Sequence[str], out: str, shards: Sequence[str] = ()
) -> None:
    """Write the rows of a set and its header: from the model, or, without one, from what its ``shards`` have written.

    ``params`` are those of the rule, ``testsets`` the files of its test sets. Raises InputError, and writes nothing,
    for a sentence or a class that fails; what was computed by then is in the store.
    """
    if shards:
        execution = dataclasses.replace(execution, store=None)
    work = Translations(params, execution, testsets)
    inputs = [*testsets, *(shards or work.corpus)]
    with work.model.made("translate", params, inputs, [out]) as record:
        rows = work.merged(shards) if shards else work.rows()
        files.write_jsonl(out, results.tidy(rows))
        record.facts["cells"] = [work.entry(cell, of_cell) for cell, of_cell in rows.items()]
        if work.fits.facts:
            record.facts["fits"] = work.fits.facts


def write_shard(params: JsonObject, execution: Execution, testsets: Sequence[str], out: str) -> None:
    """Write the rows of the sentences of one shard, by which the file is named: ``0of2.jsonl`` has every second
    sentence of each test set from the first on."""
    number, count = map(int, Path(out).stem.split("of"))
    work = Translations(params, execution, testsets, number, count)
    with work.model.made("shard", params, [*testsets, *work.corpus], [out]) as record:
        files.write_jsonl(out, results.tidy(work.rows()))
        if work.fits.facts:
            record.facts["fits"] = work.fits.facts


def shard_record(path: Path) -> Record:
    """The record of a shard; raises InputError where it has none."""
    record = read_record(record_path(path))
    if record is None:
        raise InputError(path, "has no header that says what it was made from", REMEDY)
    return record


class Translations:
    """What the job of a set does. ``params`` are those of its rule; ``testsets`` are files named by their test set;
    ``shard`` is the number of one of ``shards`` parts of every test set.
    """

    def __init__(
        self, params: JsonObject, execution: Execution, testsets: Sequence[str | Path], shard: int = 0, shards: int = 1
    ) -> None:
        self.spec, self._shard, self._shards = params, shard, shards
        self.cells = [System(*cell) for cell in params["cells"]]
        self.model = RunModel(params, execution)
        self.tests = {Path(path).stem: self.model.sentences(path) for path in testsets}
        self.fits = Fits()
        self._canvases: dict[Choice, dict[int, Row]] = {}  # by the sentence's place
        self._rows: dict[System, dict[int, Row]] = {cell: {} for cell in self.cells}

    @property
    def corpus(self) -> Sequence[Path]:
        """The files of pairs that fits read, if there are any."""
        return self.model.execution.pairs if self.spec.get("fits") else ()

    def rows(self) -> Rows:
        """The rows of each cell, in the order of the test set, or of the shard's part of it."""
        if self.cells[0].order:
            self.choose()
            self._decode()
        else:
            for cell in self.cells:
                sentences = self.tests[cell.testset]
                places = self._places(sentences)
                hypotheses = autoregressive.translate(self.model, sentences.at(places))
                self._rows[cell] = dict(zip(places, hypotheses, strict=True))
        return {cell: [rows[place] for place in sorted(rows)] for cell, rows in self._rows.items()}

    def merged(self, shards: Sequence[str]) -> Rows:
        """The rows of each cell from the files of all shards, the first shard's first.

        Raises InputError for a shard of other params, or of other sentences than are due.
        """
        for shard in shards:
            record = shard_record(Path(shard))
            for change in differences(record.params, self.spec):
                raise InputError(shard, f"was made with other params: {change}", REMEDY)
            self.fits = Fits(facts=record.facts.get("fits", {}))  # all have the same
        rows: Rows = {cell: [{}] * len(self.tests[cell.testset].rows) for cell in self.cells}
        most = max(map(len, rows.values()))  # with fewer sentences than shards, the last are empty
        for number, shard in enumerate(shards[:most]):
            parts = results.systems(shard)
            for cell in self.cells:
                part, due = parts.get(cell, []), self.tests[cell.testset].rows[number :: len(shards)]
                for row, sentence in itertools.zip_longest(part, due, fillvalue={"id": "no sentence"}):
                    if row["id"] != sentence["id"]:
                        problem = f"{cell.label}: id {row['id']!r} where {sentence['id']!r} is due"
                        raise InputError(shard, problem, REMEDY)
                rows[cell][number :: len(shards)] = part
        return rows

    def entry(self, cell: System, rows: Sequence[Row]) -> JsonObject:
        """What the header says of a cell: what its rows depend on beside the data, and their totals."""
        sentences = self.tests[cell.testset]
        if cell.order:
            denoising = self._denoising_of(cell)
            signed = signature(self.model, denoising)
            totals = summary(rows, sentences.tokens("target"), denoising)
        else:
            signed, totals = autoregressive.signature(self.model), autoregressive.summary(rows)
        return {**cell._asdict(), "signature": {**signed, "data_digest": sentences.data_digest}, **totals}

    # Canvases.

    def choose(self) -> dict[Choice, dict[int, Row]]:
        """The canvas rows of each choice, by the sentence's place: those of all methods are probed in one stream, and
        reassigned ones are reassigned from others."""
        self.fits = Fits.of(self.model, self.spec.get("fits"))
        runner, origins = self.model.runner("probe"), self._origins()
        # Ratios are reassigned among all sentences: every shard chooses the canvases that they come from for all.
        every = set(origins.values())
        works: list[tuple[tuple[Choice, int], Work]] = []
        for choice, origin in origins.items():
            if origin is None:
                works += self._choosing(choice, choice in every)
        for (choice, place), (chosen, _) in runner.run(works):
            self._canvases[choice][place] = chosen
        for choice, origin in origins.items():
            if origin:
                self._reassign(choice, origin)
        return self._canvases

    def _origins(self) -> dict[Choice, Choice | None]:
        """The choices of the cells; of each that reassigns the canvases of another choice that one, which comes
        first."""
        origins: dict[Choice, Choice | None] = {}
        for cell in self.cells:
            settings = self.spec["methods"][cell.method]
            origin = None
            if settings.get("method", cell.method) == "reassigned":
                origin = cell.testset, settings["of"]
                origins.setdefault(origin)
            origins[cell.testset, cell.method] = origin
        return origins

    def _choosing(self, choice: Choice, every: bool) -> list[tuple[tuple[Choice, int], Work]]:
        """The work on each sentence of this shard, or on ``every`` one."""
        testset, method = choice
        sentences, settings = self.tests[testset], self.spec["methods"][method]
        places = range(len(sentences.rows)) if every else self._places(sentences)
        length_method, part, head = self.fits.method(method, settings), sentences.at(places), self.fits.head
        predicted = predict(self.model, part, head) if head and declared(length_method, "uses_length_head") else ()
        works, self._canvases[choice] = [], {}
        for place, sentence in zip(places, part.seen_by(length_method, predicted), strict=True):
            works.append(((choice, place), sentences.choosing(length_method, place, sentence)))
        return works

    def _places(self, sentences: Sentences) -> range:
        """The places of this shard's sentences."""
        return range(self._shard, len(sentences.rows), self._shards)

    def _reassign(self, choice: Choice, origin: Choice) -> None:
        """Give the ratios of the canvases of ``origin`` to other sentences; they have been probed already."""
        testset, method = choice
        sentences, given, settings = self.tests[testset], self._canvases[origin], self.spec["methods"][method]
        lengths = [given[place]["length"] for place in range(len(sentences.rows))]
        reassigned = reassign(lengths, sentences.tokens("source"), settings["seed"], settings["within"])
        self._canvases[choice] = {}
        for place, length in enumerate(reassigned):
            sentences.check(place, length)
            canvas = {"length": length, "candidates": [length], "scores": [], "calls": 0, "slots": 0}
            self._canvases[choice][place] = canvas

    # Texts.

    def _decode(self) -> None:
        """A stream for each reveal order; variable-length decoders join the first."""
        streams: defaultdict[str | None, dict[System, Denoising]] = defaultdict(dict)
        for cell in self.cells:
            denoising = self._denoising_of(cell)
            name = files.canonical([denoising.name, denoising.settings])
            streams[name if denoising.order else None][cell] = denoising
        variable = streams.pop(None, {})
        first, *others = streams.values() or [{}]
        for stream in (first | variable, *others):
            self._run(stream)

    def _denoising_of(self, cell: System) -> Denoising:
        order = self.spec["orders"][cell.order]
        return Denoising.of({**self.spec, **order, "steps": cell.steps})

    def _run(self, stream: Mapping[System, Denoising]) -> None:
        """Decode the canvases of some cells, whose reveal order is the same, and make their rows.

        ``tokens`` are the ids before the first EOS or end of a turn; ``logprob`` is the mean over those before the EOS.
        Of several contenders the :func:`winner` is the row's, with the counts of all. ``length`` is the final one of a
        canvas that a variable-length decoder changes.
        """
        runner, works = self.model.runner("decode"), []
        order = next((denoising.order for denoising in stream.values()), None)
        for cell, denoising in stream.items():
            sentences = self.tests[cell.testset]
            places = self._places(sentences)
            for place, canvas in self._canvases[cell.testset, cell.method].items():
                if place in places:
                    works.append(((cell, place), sentences.denoising(place, canvas, denoising, {})))
        for (cell, place), decoded in runner.run(works, order):
            sentences, canvas = self.tests[cell.testset], self._canvases[cell.testset, cell.method][place]
            best = winner(decoded)
            tokens = sentences.written(best)
            self._rows[cell][place] = {
                "id": sentences.rows[place]["id"],
                "hypothesis": sentences.prompt.text(tokens),
                "length": len(best.tokens),
                "tokens": tokens,
                "logprob": best.logprob,
                **costs(self.model, sentences, place, canvas, decoded, stream[cell]),
                "canvas": canvas,
            }


def summary(rows: Sequence[JsonObject], targets: Sequence[int], denoising: Denoising) -> dict[str, float]:
    """Totals over the rows; ``within_steps`` counts the canvases that a larger step budget cannot touch: of a
    variable-length decoder all.

    ``length_mae``: mean distance of the (chosen) canvas from the reference's tokens, the ``targets``, and its EOS, six
    decimals.
    ``contenders``: all canvases that were decoded, where any sentence had more than one.
    """
    within = sum(bool(denoising.variable_length) or row["length"] <= denoising.steps for row in rows)
    decoded = sum(len(contenders(row["canvas"])) for row in rows)
    distances = [abs(row["length"] - tokens - 1) for row, tokens in zip(rows, targets, strict=True)]
    return {
        "sentences": len(rows),
        "within_steps": within,
        "length_mae": round(sum(distances) / max(1, len(distances)), 6),
        **({"contenders": decoded} if decoded > len(rows) else {}),
        **{name: sum(row[name] for row in rows) for name in COUNTS},
    }


def signature(model: RunModel, denoising: Denoising) -> JsonObject:
    """What the translations depend on beside the data: the decoder, the backbone and the adapter."""
    schedule = [] if denoising.variable_length else [denoising.schedule]
    steps = [] if denoising.variable_length else [f"T{denoising.steps}"]
    cache = CachePolicy.of(model.spec)
    cached = [cache.name] if cache else []
    return model.signature(f"engine r{DECODING}", denoising.label, *steps, model.precision, *schedule, *cached)


# --- What a translation costs, as the paper counts it, and as the engine runs it for the sentence by itself.

COUNTS = ("calls", "slots", "passes", "run_tokens", "head_rows")


def costs(
    model: RunModel,
    sentences: Sentences,
    place: int,
    canvas: Mapping[str, Any],
    decoded: Mapping[int, Decoded],
    denoising: Denoising,
) -> dict[str, int]:
    """The counts of a canvas row and all that is decoded for it, by the number of masks at the start.

    ``calls`` and ``slots`` are the method's as the paper counts them: probes and T steps, each step over all slots, and
    again over those of the source-free pass where the order looks at it; two passes for a SIG against a distractor. A
    variable-length decoder has the passes that it took, each over the slots of its own canvas. ``passes``,
    ``run_tokens`` and ``head_rows`` are what the engine needs for the sentence by itself: no empty steps, the probe
    reused, nothing once all before the EOS is settled, and of the prompt what the passes compute. A source-free pass is
    a pass, and so is a distractor's. A finished text that is scored takes a pass more, and so does a length head.
    """
    calls, slots, cache = canvas["calls"], canvas["slots"], sentences.cache
    apart = canvas.get("apart", 0 if slots else calls)  # a length head's pass has no slots
    # Of the method: calls and slots. Of the engine: passes over the prompt, and over the ``other`` one, each with how
    # many of these are ``cached``; slots and rows of the LM head in all of them; passes that stand ``apart`` and
    # compute their prompt.
    total: Counter[str] = Counter(
        calls=calls, slots=slots, passes=calls - apart, apart=apart, run_slots=slots, head_rows=slots
    )
    total["cached"] = canvas.get("cached", 0)
    for length, result in decoded.items():
        # Lengths may have been compared without a probe: a canvas row then has no slots.
        probed = bool(slots and canvas["scores"]) and length in canvas["candidates"]
        if isinstance(result, DecodedVariableLength):
            decoder, passes = denoising.variable_length, result.passes
            reused = int(probed and not cache and decoder is not None and decoder.starts_masked)
            total.update(calls=passes, slots=result.slots, passes=passes - reused)
            total.update(run_slots=result.slots - reused * length, head_rows=result.rows - reused * length)
        else:
            total.update(_fixed_length(length, result, denoising, probed, cache))
        if canvas.get("rescoring") and len(decoded) > 1:
            size = len(result.tokens)
            total.update(calls=1, slots=size, run_slots=size, head_rows=size, apart=1)
    prompt, other = sentences.prompts[place], sentences.sourceless
    if denoising.looks_at_distractor:
        other = sentences.prompts[sentences.distractors[place]]
    rows = total["apart"] * len(prompt)
    for tokens, passes, cached in (
        (prompt, total["passes"], total["cached"]),
        (other, total["other"], total["other_cached"]),
    ):
        if model.attention == PREFIX:  # the first pass over a prompt computes it for all
            cached = max(0, passes - 1)
        # Every pass computes the row that slot 0 of a shifted family is read from.
        rows += passes * len(tokens) - cached * (len(tokens) - int(model.shifted))
    return {
        "calls": total["calls"],
        "slots": total["slots"],
        "passes": total["passes"] + total["other"] + total["apart"],
        "run_tokens": rows + total["run_slots"],
        "head_rows": total["head_rows"],
    }


def _fixed_length(
    length: int, decoded: Decoded, denoising: Denoising, probed: bool, cache: CachePolicy | None
) -> dict[str, int]:
    """After the probes: the all-mask pass is not run again where that length was probed and its reading is all that
    the order looks at; the source-free passes of the steps that look at more are run. With a prompt cache all are
    run, and only some compute the prompt. A SIG against a distractor is of exact readings: there that behind the
    source takes a pass of its own too."""
    passes = decoded.passes
    masked, steps = denoising.masked(length, passes), len(denoising.counts(length))
    compared = [needs_sourceless(denoising.order, step, steps) for step in range(passes)]
    reused, distractor = int(probed and not compared[0] and not cache), int(denoising.looks_at_distractor)
    exact = distractor if denoising.reuse(length, cache).refresh else 0
    others, looking = sum(compared) + distractor, [step for step, looks in enumerate(compared) if looks]
    own = passes - reused + exact
    return {
        "calls": denoising.calls,
        "slots": denoising.calls * length,
        "passes": own,
        "cached": cache.saved(range(passes)) if cache else 0,
        "other": others,
        "other_cached": cache.saved(looking) if cache else 0,
        "run_slots": (own + others) * length,
        "head_rows": sum(masked) + sum(itertools.compress(masked, compared)) + (exact + distractor - reused) * length,
    }
