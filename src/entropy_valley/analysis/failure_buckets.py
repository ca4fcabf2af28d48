"""Why does EV score below Ratio where it does? Each such sentence by the likely cause, in each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from entropy_valley.analysis.comparisons import by_run
from entropy_valley.analysis.coverage import EV, PLACE, RIVALS, CoverageParams, read_tokens
from entropy_valley.analysis.params import ScoredCell
from entropy_valley.analysis.scores import require_sentences, sentences
from entropy_valley.late import pandas as pd

RUN = (*PLACE, "seed")
CAUSES = ("very_short", "overshoot", "under_compression", "within_grid")
SHORT, OVERSHOOT, UNDER, WITHIN = CAUSES
ALL = "all"
SHORTEST = 3  # tokens of a very short source
COLUMNS = [*RUN, "statistic", "runs", "sentences", "rival", "cause", "losses", "share", "delta"]


def cause(source_tokens: int, reference_canvas: int, candidates: Sequence[int]) -> str:
    """The first of :data:`CAUSES` that fits a sentence; ``candidates`` are the lengths that EV compared.

    The reference's canvas (its tokens and the EOS) may lie below all candidates, above all, or between them.
    """
    if source_tokens <= SHORTEST:
        return SHORT
    if reference_canvas < min(candidates):
        return OVERSHOOT
    return UNDER if reference_canvas > max(candidates) else WITHIN


def failure_buckets(params: CoverageParams) -> pd.DataFrame:
    """The tidy numbers, :data:`COLUMNS`: by run (``statistic`` "run"), then the mean over runs ("mean", no seed).

    ``losses``: sentences on which EV scores below the ``rival``; ``share`` of all losses; ``delta``: mean of EV minus
    the rival over them in the main metric, NaN where there is none.
    """
    runs = by_run(params.cells, RUN)
    rows = (dict(zip(RUN, run, strict=True)) | row for run, cells in runs.items() for row in _rows(params, cells))
    frame = pd.DataFrame(rows)
    groups = frame.groupby([*PLACE, "rival", "cause"], sort=False)
    means = groups[["sentences", "losses", "share", "delta"]].mean().assign(runs=groups.size()).reset_index()
    whole = pd.concat([frame.assign(statistic="run", runs=1), means.assign(statistic="mean")], ignore_index=True)
    return whole[COLUMNS]


def _rows(params: CoverageParams, cells: Mapping[str, ScoredCell]) -> Iterator[dict[str, Any]]:
    """The rows of one run."""
    ev, sign = cells[EV], 1 if params.metric.higher_is_better else -1
    scores, causes = sentences(ev, params.metric), _causes(params, ev)
    for rival in (name for name in RIVALS if name in cells):
        other = sentences(cells[rival], params.metric)
        place, of_ev = (cell.within(cell.scores_file) for cell in (cells[rival], ev))
        require_sentences(place, other.index, of_ev, scores.index)
        delta = scores - other.loc[scores.index]
        lost = delta[sign * delta < 0]
        for name in (*CAUSES, ALL):
            found = lost if name == ALL else lost[causes.loc[lost.index] == name]
            share = len(found) / len(lost) if len(lost) else float("nan")
            numbers = {"losses": len(found), "share": share, "delta": float(found.mean())}
            yield {"sentences": len(scores), "rival": rival, "cause": name, **numbers}


def _causes(params: CoverageParams, ev: ScoredCell) -> pd.Series:
    """The cause that each sentence has if EV loses on it, by id."""
    tokens = read_tokens(params.tokens[ev.name])
    canvases = {row["id"]: row["candidates"] for row in ev.canvases("candidates")}
    require_sentences(ev.within(ev.translations_file), canvases, params.tokens[ev.name], tokens)
    return pd.Series({name: cause(x, y + 1, canvases[name]) for name, (x, y) in tokens.items()}, dtype=object)
