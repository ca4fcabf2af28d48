"""From a test set and its canvases to hypothesis rows, their totals and what they depend on."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entropy_valley import files, plugins
from entropy_valley.backbone.prompt_attention import PREFIX
from entropy_valley.decoding.costs import COUNTS, PromptCosts, sentence_costs
from entropy_valley.decoding.pipeline import Pipeline, contenders, winner
from entropy_valley.decoding.prompt_cache import modes, refresh_of
from entropy_valley.errors import InputError
from entropy_valley.revisions import DECODING

if TYPE_CHECKING:
    from entropy_valley.decoding.denoising import Denoising
    from entropy_valley.engine.job import Job
    from entropy_valley.engine.queue import Decoded


def read_canvases(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The canvas of each row of the test set.

    Raises InputError if the two do not name the same sentences, for lengths, scores and counts that are no numbers, and
    for contenders that are not ascending lengths with the row's own among them.
    """
    canvases = files.read_jsonl(path, ("id", "length", "candidates", "scores", "calls", "slots"))
    for number, (canvas, row) in enumerate(itertools.zip_longest(canvases, rows, fillvalue={}), 1):
        if canvas.get("id") != row.get("id"):
            raise InputError(
                f"{path}:{number}",
                f"canvas of {canvas.get('id')!r}, but the test set has {row.get('id')!r}",
                "Make the canvases from this test set.",
            )
        if problem := _no_number(canvas):
            raise InputError(f"{path}:{number}", problem, "Remove the file and run again: it is made anew.")
        lengths = contenders(canvas)
        if canvas["length"] not in lengths or any(one >= other for one, other in itertools.pairwise(lengths)):
            problem = f"contenders {lengths} of a canvas of {canvas['length']} slots"
            raise InputError(f"{path}:{number}", problem, "Name each once, ascending, that length among them.")
    return canvases


def _no_number(canvas: Mapping[str, Any]) -> str | None:
    """Which entry of a canvas is not the number, or the list of numbers, that it must be; None if all are."""
    for name, least in {"length": 1, "calls": 0, "slots": 0}.items():
        if plugins.whole(canvas[name], least) is None:
            return f"{name} is {canvas[name]!r}"
    for name, kind in {"candidates": plugins.whole, "contenders": plugins.whole, "scores": plugins.number}.items():
        found = canvas.get(name, [])
        if not isinstance(found, list) or None in map(kind, found):
            return f"{name} are {found!r}"
    return None


def translate(job: Job, canvases: Sequence[Mapping[str, Any]], denoising: Denoising) -> list[dict[str, Any]]:
    """Hypothesis rows ``{id, hypothesis, length, tokens, logprob, …}`` with the counts of :func:`sentence_costs`.

    ``tokens`` are the ids before the first EOS or end of a turn; ``logprob`` is the mean over those before the EOS.
    Of several contenders all are decoded, and the :func:`winner` is the row's; the counts are of all of them. Where a
    variable-length decoder changes the canvas, ``length`` is the final one.
    """
    decoded = Pipeline(job.runner("decode"), job.inputs, refresh_of(job.spec)).denoise(canvases, denoising)
    return [_row(job, place, *pair, denoising) for place, pair in enumerate(zip(canvases, decoded, strict=True))]


def summary(
    job: Job, canvases: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], denoising: Denoising
) -> dict[str, int | float]:
    """Totals over the rows; ``within_steps`` counts the canvases that a larger step budget cannot touch: of a
    variable-length decoder all.

    ``length_mae``: mean distance of the (chosen) canvas from the reference's tokens and its EOS, six decimals.
    ``contenders``: all canvases that were decoded, where any sentence had more than one.
    """
    totals = {name: sum(row[name] for row in rows) for name in COUNTS}
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
    engine, cached = f"engine r{DECODING}", modes(job.spec)
    if denoising.variable_length:
        return job.signature(engine, denoising.label, job.precision, *cached)
    return job.signature(engine, denoising.label, f"T{denoising.steps}", job.precision, denoising.schedule, *cached)


def _row(
    job: Job, place: int, canvas: Mapping[str, Any], decoded: Mapping[int, Decoded], denoising: Denoising
) -> dict[str, Any]:
    best, inputs = winner(decoded), job.inputs
    tokens = inputs.texts.tokens(best)
    compared = denoising.looks_at_distractor
    other = inputs.prompts[inputs.distractor(place)] if compared else inputs.sourceless
    once, refresh = job.attention == PREFIX, refresh_of(job.spec)
    prompts = PromptCosts(len(inputs.prompts[place]), len(other), job.spec["shifted"], once, refresh)
    return {
        "id": job.rows[place]["id"],
        "hypothesis": job.identity.prompt.text(tokens),
        "length": len(best.tokens),
        "tokens": tokens,
        "logprob": best.logprob,
        **sentence_costs(canvas, prompts, decoded, denoising),
    }
