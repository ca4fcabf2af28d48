"""From a test set and its canvases to hypotheses, decoding only what the store has not."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.decoding.contenders import contenders, winner
from entropy_valley.decoding.variable_length.job import fill_growing, growing_cost
from entropy_valley.engine.keys import decode_key, probe_key
from entropy_valley.engine.order import needs_sourceless
from entropy_valley.engine.queue import Queue
from entropy_valley.engine.reading import Reading
from entropy_valley.errors import InputError
from entropy_valley.revisions import DECODING

if TYPE_CHECKING:
    from entropy_valley.decoding.denoising import Denoising
    from entropy_valley.engine.job import Job

TOTALS = ("calls", "slots", "passes", "run_tokens", "head_rows")


def read_canvases(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The canvas of each row of the test set.

    Raises InputError if the two do not name the same sentences, and for contenders that are not ascending lengths with
    the row's own among them.
    """
    canvases = files.read_jsonl(path, ("id", "length", "candidates", "scores", "calls", "slots"))
    for number, (canvas, row) in enumerate(itertools.zip_longest(canvases, rows, fillvalue={}), 1):
        if canvas.get("id") != row.get("id"):
            raise InputError(
                f"{path}:{number}",
                f"canvas of {canvas.get('id')!r}, but the test set has {row.get('id')!r}",
                "Make the canvases from this test set.",
            )
        lengths = contenders(canvas)
        if canvas["length"] not in lengths or any(one >= other for one, other in itertools.pairwise(lengths)):
            problem = f"contenders {lengths} of a canvas of {canvas['length']} slots"
            raise InputError(f"{path}:{number}", problem, "Name each once, ascending, that length among them.")
    return canvases


def translate(job: Job, canvases: Sequence[Mapping[str, Any]], denoising: Denoising) -> list[dict[str, Any]]:
    """Hypothesis rows ``{id, hypothesis, length, tokens, logprob, calls, slots, passes, run_tokens, head_rows}``.

    ``tokens`` are the ids before the first EOS or end of a turn; ``logprob`` is the mean over those before the EOS.
    Of several contenders all are decoded, and the :func:`winner` is the row's; the counts are of all of them.
    ``calls`` and ``slots`` are the method's as the paper counts them: probes and T steps, each step over all slots,
    and again over those of the source-free twin where the order looks at it.
    ``passes``, ``run_tokens`` and ``head_rows`` are what the engine needs for the sentence by itself: no empty steps,
    the probe reused, nothing once all before the EOS is settled. A twin's pass is a pass.

    Where a variable-length decoder changes the canvas, ``length`` is the final one, and ``calls`` and ``slots`` are the
    probes and the passes that it really took, each over the slots of its own canvas.
    """
    asked = [(place, length) for place, canvas in enumerate(canvases) for length in contenders(canvas)]
    for place, length in asked:
        job.check(place, length)
    decoded: list[dict[int, dict[str, Any]]] = [{} for _ in canvases]
    filled = fill_growing(job, asked, denoising) if denoising.variable_length else _fill(job, asked, denoising)
    for (place, length), value in zip(asked, filled, strict=True):
        decoded[place][length] = value
    return [
        _row(job, row["id"], prompt, canvas, filled, denoising)
        for row, prompt, canvas, filled in zip(job.rows, job.prompts, canvases, decoded, strict=True)
    ]


def text_tokens(tokens: Sequence[int], text: int, turn_end: int | None) -> list[int]:
    """The ids of a filled canvas that are its text: of the ``text`` before the first EOS, those before ``turn_end``."""
    return list(itertools.takewhile(lambda token: token != turn_end, tokens[:text]))


def summary(
    job: Job, canvases: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], denoising: Denoising
) -> dict[str, int | float]:
    """Totals over the rows; ``within_steps`` counts the canvases that a larger step budget cannot touch: of a
    variable-length decoder all.

    ``length_mae``: mean distance of the (chosen) canvas from the reference's tokens and its EOS, six decimals.
    ``contenders``: all canvases that were decoded, where any sentence had more than one.
    """
    totals = {name: sum(row[name] for row in rows) for name in TOTALS}
    within = sum(bool(denoising.variable_length) or row["length"] <= denoising.steps for row in rows)
    decoded = sum(len(contenders(canvas)) for canvas in canvases)
    return {
        "sentences": len(rows),
        "within_steps": within,
        "length_mae": _length_error(job, rows),
        **({"contenders": decoded} if decoded > len(rows) else {}),
        **totals,
    }


def _length_error(job: Job, rows: Sequence[Mapping[str, Any]]) -> float:
    true = [len(job.identity.prompt.tokens(pair["target"])) + 1 for pair in job.rows]
    errors = [abs(row["length"] - length) for row, length in zip(rows, true, strict=True)]
    return round(sum(errors) / max(1, len(errors)), 6)


def signature(job: Job, denoising: Denoising) -> dict[str, Any]:
    """What the hypotheses depend on beside the data: the decoder, the backbone and the adapter."""
    engine = f"engine r{DECODING}"
    if denoising.variable_length:
        return job.signature(engine, denoising.label, job.precision)
    return job.signature(engine, denoising.label, f"T{denoising.steps}", job.precision, denoising.schedule)


def _fill(job: Job, asked: Sequence[tuple[int, int]], denoising: Denoising) -> list[dict[str, Any]]:
    """The filled canvas of each (row of the test set, slots), as :class:`Filled` gives it to JSON."""
    checkpoint, numerics = job.identity.digest, job.numerics
    canvases = [denoising.canvas(job.prompts[place], job.sourceless, length) for place, length in asked]
    keys = [decode_key(checkpoint, numerics, canvas, denoising.name, denoising.settings) for canvas in canvases]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        queue = Queue()
        for place in missing:
            canvas = canvases[place]
            start = job.store.get(probe_key(checkpoint, numerics, canvas.prompt, canvas.length))
            queue.put(place, dataclasses.replace(canvas, start=start and Reading.from_json(start)))
        for place, result in job.engine.run(queue, denoising.order):
            yield place, result.to_json()

    return job.recall("decode", keys, compute)


def _row(
    job: Job,
    sentence: str,
    prompt: Sequence[int],
    canvas: Mapping[str, Any],
    decoded: Mapping[int, Mapping[str, Any]],
    denoising: Denoising,
) -> dict[str, Any]:
    start = winner({one: filled["logprob"] for one, filled in decoded.items()})
    filled = decoded[start]
    tokens = text_tokens(filled["tokens"], filled["text"], job.identity.turn_end)
    costs = [_cost(canvas, one, len(prompt), len(job.sourceless), value, denoising) for one, value in decoded.items()]
    probes = {
        "calls": canvas["calls"],
        "slots": canvas["slots"],
        "passes": canvas["calls"],
        "run_tokens": canvas["calls"] * len(prompt) + canvas["slots"],
        "head_rows": canvas["slots"],
    }
    return {
        "id": sentence,
        "hypothesis": job.identity.prompt.text(tokens),
        "length": len(filled["tokens"]),
        "tokens": tokens,
        "logprob": filled["logprob"],
        **{name: value + sum(cost[name] for cost in costs) for name, value in probes.items()},
    }


def _cost(
    canvas: Mapping[str, Any],
    length: int,
    prompt: int,
    sourceless: int,
    filled: Mapping[str, Any],
    denoising: Denoising,
) -> dict[str, int]:
    """What denoising at one length costs after the probes: the all-mask pass is not run again where that length was
    among the probed and its reading is all that the order looks at; the twins of the steps that look at more are."""
    # Lengths may have been compared without a probe: a canvas row then has no slots.
    probed = bool(canvas["slots"] and canvas["scores"]) and length in canvas["candidates"]
    if denoising.variable_length:
        return growing_cost(length, prompt, filled, int(probed))
    passes = filled["passes"]
    masked, steps = denoising.masked(length, passes), len(denoising.counts(length))
    compared = [needs_sourceless(denoising.order, step, steps) for step in range(passes)]
    reused = int(probed and not compared[0])
    twins = sum(compared)
    return {
        "calls": denoising.calls,
        "slots": denoising.calls * length,
        "passes": passes - reused + twins,
        "run_tokens": (passes - reused) * (prompt + length) + twins * (sourceless + length),
        "head_rows": sum(masked) - reused * length + sum(itertools.compress(masked, compared)),
    }
