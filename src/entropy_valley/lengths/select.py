"""The length methods of a job: their fits, what they may know of a sentence, and a control that permutes ratios."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PositiveInt

from entropy_valley import files
from entropy_valley.decoding.requests import SHORTEST
from entropy_valley.errors import InputError
from entropy_valley.lengths import LengthMethod, Sentence, find_method, make_method
from entropy_valley.lengths.base import sentences_of
from entropy_valley.lengths.statistics import LengthStatistics
from entropy_valley.revisions import DECODING, LENGTH_HEAD
from entropy_valley.settings import Name, Printed, Section

if TYPE_CHECKING:
    from entropy_valley.decoding.job import ModelJob
    from entropy_valley.lengths.training_pairs import Fits


def read_method(name: str, settings: Mapping[str, Any], statistics: LengthStatistics | None) -> LengthMethod:
    """A length method from its settings; with the length statistics of its run, if it uses them.

    Raises :class:`InputError` where they are needed and not given.
    """
    if not getattr(find_method(name, settings), "uses_statistics", False):
        return make_method(name, settings)
    if statistics is None:
        raise InputError(f"length method {name!r}", "needs length statistics", "Name them in the spec's `fits`.")
    return make_method(name, settings, statistics)


def needed_head(name: str, method: LengthMethod, fits: Fits) -> bytes | None:
    """The run's length head where the method uses it, else None.

    Raises InputError where it is needed and not given.
    """
    if not getattr(method, "uses_length_head", False):
        return None
    if fits.head is None:
        raise InputError(f"length method {name!r}", "needs a length head", "Name it in the spec's `fits`.")
    return fits.head.weights


def to_choose(
    job: ModelJob, name: str, settings: Mapping[str, Any], fits: Fits, places: Sequence[int]
) -> tuple[LengthMethod, dict[int, Sentence]]:
    """A length method, and what it may know of the rows at ``places``.

    The model is loaded if a length head is to predict something that the store has not.
    """
    method = read_method(name, settings, fits.statistics)
    weights = needed_head(name, method, fits)
    part = job.on([job.rows[place] for place in places])
    predicted = predict(part, weights) if weights else ()
    sentences = sentences_of(part.rows, job.identity.prompt, method, predicted, part.inputs.rooms)
    return method, dict(zip(places, sentences, strict=True))


def predict(job: ModelJob, weights: bytes) -> list[dict[int, float]]:
    """For each row of the test set the log-probabilities of its likeliest canvas lengths, the likeliest first.

    ``weights`` are the head's. The model is loaded at a miss; a row costs one pass over its prompt.
    """
    stage = ["length head", DECODING, LENGTH_HEAD, job.identity.digest, job.numerics]
    keys = [files.digest([*stage, list(prompt), files.bytes_digest(weights)]) for prompt in job.inputs.prompts]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.lengths.length_head import LengthHead, predictions

        head, prompts = LengthHead.of(weights, job.backbone.device), [job.inputs.prompts[place] for place in missing]
        for index, likeliest in predictions(head, job.backbone, prompts, job.ledger, job.how.token_budget, job.fill):
            yield missing[index], [[length, logprob] for length, logprob in likeliest.items()]

    return [dict(map(tuple, value)) for value in job.recall("length head", keys, compute)]


# --- Realised-ratio reassignment: a method's canvas ratios, given to other sentences of the same test set.
#
# The paper's control (sec. "Selector checks"): it keeps the distribution of the ratios, and breaks the pairing of
# source and canvas. The mean over many permutations estimates the score of a ratio that is drawn at random from EV's.
# Each permutation is a method of its own.

DECILES = 10


class Reassigned(Section):
    """A control: another method's canvas ratios, given to other sentences. It probes nothing."""

    method: Literal["reassigned"] = "reassigned"
    label: Printed[str | None] = Field(None, description="its printed name in tables and figures")
    of: Name = Field("ev", description="the method whose ratios L/|x| are permuted")
    seed: PositiveInt = Field(description="of the permutation")
    within: Literal["all", "deciles"] = Field(
        "all", description="deciles: only between sentences of the same decile of source length"
    )


def reassigned_rows(job: ModelJob, settings: Mapping[str, Any], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """The canvas rows of a job's sentences, from the ``lengths`` that another method has given all of them.

    ``settings`` are those of :class:`Reassigned`. The ratios are those that other sentences have probed: this method's
    own probes are none. Raises InputError for a canvas that exceeds the context.
    """
    tokens = job.identity.prompt.tokens
    sources = [len(tokens(row["source"])) for row in job.rows]
    dealt = reassign(lengths, sources, settings["seed"], settings["within"])
    for place, length in enumerate(dealt):
        job.inputs.check(place, length)
    return [{"length": length, "candidates": [length], "scores": [], "calls": 0, "slots": 0} for length in dealt]


def reassign(lengths: Sequence[int], sources: Sequence[int], seed: int, within: str) -> list[int]:
    """New canvas lengths: the ratios L/|x| are permuted, and each is multiplied by its new sentence's source length.

    ``lengths`` are slots with that of the EOS, ``sources`` are tokens; an empty source counts as one token. The result
    is rounded to the nearest slot. Ratios are exact fractions, so a sentence with its own ratio keeps its length.
    ``within`` "all" permutes over the whole test set, "deciles" within each tenth of it by source length.
    """
    counts = [max(1, count) for count in sources]
    generator, dealt = random.Random(seed), [0] * len(lengths)
    for group in _groups(counts, within):
        givers = list(group)
        generator.shuffle(givers)
        for place, giver in zip(group, givers, strict=True):
            dealt[place] = max(SHORTEST, round(Fraction(lengths[giver], counts[giver]) * counts[place]))
    return dealt


def _groups(sources: Sequence[int], within: str) -> list[list[int]]:
    """The sentences that exchange ratios: all, or tenths of nearly equal size; equal sources in the file's order."""
    if within == "all":
        return [list(range(len(sources)))]
    ranked = sorted(range(len(sources)), key=sources.__getitem__)
    bounds = [len(ranked) * part // DECILES for part in range(DECILES + 1)]
    return [ranked[first:last] for first, last in itertools.pairwise(bounds)]
