"""Does a translation keep what its source says literally, and where does EV gain? Retention, and COMET by length ratio.

A sentence's values are averaged over runs first; the paired tests are then over sentences.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Self

from entropy_valley import files
from entropy_valley.analysis.comparisons import by_run
from entropy_valley.analysis.coverage_items import extractors, retention
from entropy_valley.analysis.params import Params, ScoredCell
from entropy_valley.analysis.published import find
from entropy_valley.analysis.scores import require_sentences, sentences
from entropy_valley.analysis.significance import paired_test
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd

PLACE = ("direction", "testset")
System = tuple[str, int]  # method and seed
EV, RIVALS = "ev", ("ratio", "ratio_eos")
RETENTION, BUCKET = "retention", "bucket"
TESTED = ("delta", "ci_low", "ci_high", "p_one_sided", "p_two_sided")
COLUMNS = [*PLACE, "block", "item", "sentences", "runs", "method", "mean", *TESTED, "resamples", "bootstrap_seed"]


@dataclass(frozen=True)
class CoverageParams(Params):
    """As :class:`Params`; ``testsets`` and ``tokens`` are the files of each cell, by its name.

    ``buckets`` has by direction the ratios r at which a bucket ends and the next begins; ``eos`` adds the reference's
    EOS to its tokens in r. ``paper`` has by direction and item how many sentences the paper finds on this test set.
    """

    testsets: Mapping[str, str] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    buckets: Mapping[str, Sequence[float]] = field(default_factory=dict)
    eos: bool = False
    paper: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: Mapping[str, Any], required: Iterable[str] = ()) -> Self:
        """As :meth:`Params.parse`; a cell without these files is an InputError."""
        params = super().parse(value, ("testsets", "tokens", *required))
        for cell in params.cells:
            if cell.name not in params.testsets or cell.name not in params.tokens:
                raise InputError("PARAMS", f"no testsets or tokens for {cell.name}", "Give both for each cell.")
        return params


def coverage(params: CoverageParams) -> pd.DataFrame:
    """The tidy numbers, :data:`COLUMNS`: a row for each system of each item of each block.

    ``mean`` is the retention (a share) of the ``sentences`` that have the item, or their main score. Beside a rival of
    EV is the paired test of EV minus it. An item without sentences has NaN.
    """
    places = by_run(params.cells, PLACE, attrgetter("method", "seed"))
    rows = (dict(zip(PLACE, place, strict=True)) | row for place in places for row in _rows(params, places[place]))
    return pd.DataFrame(rows, columns=COLUMNS)


def bucket_names(edges: Sequence[float]) -> list[str]:
    """``r<0.6``, ``0.6<=r<0.8``, ``r>=0.8``: the buckets that the ascending edges make."""
    inner = [f"{low:g}<=r<{high:g}" for low, high in itertools.pairwise(edges)]
    return [f"r<{edges[0]:g}", *inner, f"r>={edges[-1]:g}"]


def bucket(ratio: float, edges: Sequence[float]) -> int:
    """In which of :func:`bucket_names` a ratio is; an edge belongs to the bucket above it."""
    return sum(ratio >= edge for edge in edges)


def papers_count(direction: str, item: str) -> int | None:
    """On how many sentences of WMT22 the paper finds an item, or a ratio r of a bucket; None where it does not say."""
    found = find("tab:coverage", "sentences", direction=direction, setting=item)
    return int(found.value) if found else None


def read_tokens(path: str) -> dict[str, tuple[int, int]]:
    """|x| and the reference's tokens (without its EOS) of each sentence, by id."""
    rows = files.read_jsonl(path, ("id", "source_tokens", "target_tokens"))
    return {row["id"]: (row["source_tokens"], row["target_tokens"]) for row in rows}


def _rows(params: CoverageParams, cells: Mapping[System, ScoredCell]) -> Iterator[dict[str, Any]]:
    """The rows of one direction and test set."""
    first = next(iter(cells.values()))
    testset = params.testsets[first.name]
    sources = {row["id"]: row["source"] for row in files.read_jsonl(testset, ("id", "source"))}
    outputs = {key: hypotheses(cell, testset, sources) for key, cell in cells.items()}
    for kind, extract in extractors(first.direction.split("-")[0]).items():
        wanted = {name: items for name, text in sources.items() if (items := extract(text))}
        yield from _compared(params, RETENTION, kind, {key: _kept(wanted, texts) for key, texts in outputs.items()})
    if edges := params.buckets.get(first.direction):
        scores = {key: _scores(params, cell, testset, sources) for key, cell in cells.items()}
        number = _buckets(params, first, testset, sources)
        for at, name in enumerate(bucket_names(edges)):
            ids = [one for one in sources if number[one] == at]
            yield from _compared(params, BUCKET, name, {key: found.loc[ids] for key, found in scores.items()})


def hypotheses(cell: ScoredCell, testset: str, ids: Iterable[str]) -> dict[str, str]:
    """The translations of a cell by id; InputError unless they are of the sentences ``ids`` of ``testset``, a file."""
    found = {row["id"]: row["hypothesis"] for row in cell.translations()}
    require_sentences(cell.within(cell.translations_file), found, testset, ids)
    return found


def _scores(params: CoverageParams, cell: ScoredCell, testset: str, ids: Iterable[str]) -> pd.Series:
    found = sentences(cell, params.metric)
    require_sentences(cell.within(cell.scores_file), found.index, testset, ids)
    return found


def _kept(wanted: Mapping[str, Sequence[str]], texts: Mapping[str, str]) -> pd.Series:
    return pd.Series({name: retention(items, texts[name]) for name, items in wanted.items()}, dtype=float)


def _buckets(params: CoverageParams, cell: ScoredCell, testset: str, ids: Iterable[str]) -> dict[str, int]:
    """The place of each sentence's bucket."""
    path, edges = params.tokens[cell.name], params.buckets[cell.direction]
    tokens = read_tokens(path)
    require_sentences(path, tokens, testset, ids)
    return {name: bucket((target + params.eos) / max(1, source), edges) for name, (source, target) in tokens.items()}


def _compared(
    params: CoverageParams, block: str, item: str, systems: Mapping[System, pd.Series]
) -> Iterator[dict[str, Any]]:
    """A row for each method: its mean over sentences of the mean over runs, and EV's lead over it."""
    runs: dict[str, list[pd.Series]] = {}
    for (method, _), values in systems.items():
        runs.setdefault(method, []).append(values)
    means = {method: sum(values) / len(values) for method, values in runs.items()}
    for method, values in means.items():
        row = {"block": block, "item": item, "sentences": len(values), "runs": len(runs[method]), "method": method}
        row |= {"mean": float(values.mean()), "resamples": params.resamples, "bootstrap_seed": params.seed}
        if method in RIVALS and len(values):
            test = asdict(paired_test(means[EV], values, params.how))
            row |= {name: test[name] for name in TESTED}
        yield row
