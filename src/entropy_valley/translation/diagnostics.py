"""What figures show of all-mask canvases: the entropy valley, and the concentration of SIG. It chooses nothing."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from entropy_valley import files
from entropy_valley.data.sampling import draw
from entropy_valley.decoding.canvas import SHORTEST
from entropy_valley.decoding.requests import gains
from entropy_valley.lengths.base import candidate_length
from entropy_valley.lengths.ev import mean_entropy
from entropy_valley.settings import JsonObject
from entropy_valley.translation.job import Execution, RunModel
from entropy_valley.translation.sentences import Sentences

# --- The entropy valley of a test set: all-mask canvases around the reference's length, and on a dense grid of
# ratios.
#
# A diagnostic, not a length method: the offsets are counted from the reference. Plain numbers in, the curves of
# ``valley.json`` out.


class ValleyCanvas(NamedTuple):
    """An all-mask canvas: the row of the test set, where on a curve it belongs (an offset or a ratio), its slots."""

    row: int
    at: float
    length: int


def curve(places: Sequence[ValleyCanvas], entropies: Sequence[float]) -> list[dict[str, Any]]:
    """By place on the curve, ascending: ``at``; over its sentences the ``mean`` entropy (nats) and its
    ``standard_error`` (null for one sentence); ``mean_length`` in slots; and how many ``sentences``."""
    groups: dict[float, list[tuple[int, float]]] = {}
    for place, entropy in zip(places, entropies, strict=True):
        groups.setdefault(place.at, []).append((place.length, entropy))
    points = []
    for at in sorted(groups):
        lengths, values = zip(*groups[at], strict=True)
        count = len(values)
        error = statistics.stdev(values) / math.sqrt(count) if count > 1 else None
        mean, length = math.fsum(values) / count, sum(lengths) / count
        points.append({"at": at, "mean": mean, "standard_error": error, "mean_length": length, "sentences": count})
    return points


def complete(places: Sequence[ValleyCanvas], entropies: Sequence[float]) -> list[dict[str, Any]]:
    """:func:`curve` over the sentences that have a canvas at every place of the curve, so that all points have the same
    ones; and ``lowest``, the share of them whose entropy is lowest there (the shorter canvas on a tie)."""
    whole = len({place.at for place in places})
    have = Counter(place.row for place in places)
    kept = [pair for pair in zip(places, entropies, strict=True) if have[pair[0].row] == whole]
    if not kept:
        return []
    best: dict[int, tuple[float, float]] = {}
    for place, entropy in kept:
        best[place.row] = min(best.get(place.row, (math.inf, 0.0)), (entropy, place.at))
    lowest = Counter(at for _, at in best.values())
    points = curve(*zip(*kept, strict=True))
    return [point | {"lowest": lowest[point["at"]] / len(best)} for point in points]


# --- The all-mask canvases that diagnostics of a run's test sets read. They see the reference, and choose nothing.
#
# ``valley``: mean entropies around the reference's length and on a dense grid of ratios. ``sig``: how much a sentence's
# canvas depends on its source, and how much of that sits in a few slots. The paper names a sentence-level
# SIG-Concentration and does not define it; its authors' code takes the Gini coefficient.


def write(params: JsonObject, execution: Execution, testsets: Sequence[str], out: str) -> None:
    """Write ``{kind: {test set: what is read}}`` of the kinds and test sets that the rule's params name."""
    model = RunModel(params, execution)
    with model.store:
        tests = {Path(path).stem: model.sentences(path) for path in testsets}
        results: dict[str, dict[str, Any]] = {}
        for kind, names in params["testsets"].items():
            results[kind] = {name: READERS[kind](model, tests[name], params[kind]) for name in names}
        files.write_json(out, results)
        model.report("diagnose")


def read_valley(model: RunModel, sentences: Sentences, spec: JsonObject) -> JsonObject:
    """The curves of a test set, see :func:`curve`, and the source tokens of each sentence.

    One curve is of canvases with so many slots less or more than the reference's tokens and its EOS, none too short to
    choose; the other of those that EV takes for the ratios of the grid. Both count their sentences, so what exceeds the
    context is left out.
    """
    around, grid, sources, targets = [], [], sentences.tokens("source"), sentences.tokens("target")
    for row in draw(sentences.rows, spec["sentences"], spec["seed"], spec.get("subset", "keyed_hash")):
        for offset in range(-spec["offset"], spec["offset"] + 1):
            length = targets[row] + 1 + offset
            if length >= SHORTEST and sentences.fits(row, length):
                around.append(ValleyCanvas(row, offset, length))
        for ratio in spec["ratios"]:
            length = candidate_length(ratio, sources[row])
            if sentences.fits(row, length):
                grid.append(ValleyCanvas(row, ratio, length))
    probes = [sentences.probe(place.row, place.length) for place in around + grid]
    entropies = list(map(mean_entropy, model.runner("probe").answers(probes)))
    names = [row["id"] for row in sentences.rows]
    return {
        "offsets": curve(around, entropies[: len(around)]),
        "offsets_complete": complete(around, entropies[: len(around)]),
        "ratios": curve(grid, entropies[len(around) :]),
        "source_tokens": dict(zip(names, sources, strict=True)),
        "signature": {**model.signature("all-mask"), "data_digest": sentences.data_digest},
    }


def read_sig(model: RunModel, sentences: Sentences, spec: JsonObject) -> list[dict[str, Any]]:
    """``{id, concentration, mean_sig}`` of each sentence: of the SIG (nats, six decimals) of the slots of its canvas at
    the reference's length, as Oracle takes it.

    It is of the kind that an order's ``sig`` names: one probe with a ``stepwise_kl``, or two, the second behind the
    sentence's distractor.
    """
    runner, lengths = model.runner("sig"), [target + 1 for target in sentences.tokens("target")]
    if spec["sig"] == "stepwise_kl":
        probes = [sentences.probe(place, length, sentences.sourceless) for place, length in enumerate(lengths)]
        sigs = [reading.sigs for reading in runner.answers(probes)]
    else:
        probes = [sentences.probe(place, length) for place, length in enumerate(lengths)]
        probes += [sentences.probe(*pair) for pair in zip(sentences.distractors, lengths, strict=True)]
        readings = runner.answers(probes)
        sigs = list(map(gains, readings[: len(lengths)], readings[len(lengths) :]))
    rows = []
    for row, of_slots in zip(sentences.rows, sigs, strict=True):
        share, mean = gini(of_slots), statistics.fmean(of_slots)
        rows.append({"id": row["id"], "concentration": round(share, 6), "mean_sig": round(mean, 6)})
    return rows


def gini(numbers: Sequence[float]) -> float:
    """The Gini coefficient of numbers, in [0, 1 - 1/n]: 2 Σ i x_i / (n Σ x) - (n + 1) / n, the i-th smallest being x_i;
    0 where all are 0. A negative one counts as 0."""
    positive, count = sorted(max(0.0, number) for number in numbers), len(numbers)
    total = math.fsum(positive)
    ranked = math.fsum(place * number for place, number in enumerate(positive, 1))
    return 2 * ranked / (count * total) - (count + 1) / count if total else 0.0


READERS = {"valley": read_valley, "sig": read_sig}
