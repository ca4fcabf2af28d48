"""The table of the sentences on which EV scores below the fixed ratio, by likely cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from entropy_valley.stats.cells import Params, ScoredCell
from entropy_valley.stats.closure import require_sentences, sentences
from entropy_valley.stats.comparisons import by_run
from entropy_valley.tables import formats
from entropy_valley.tables.coverage import EV, PLACE, RIVALS, OfEvAndRatio, read_tokens
from entropy_valley.tables.labels import method
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection

RUN = (*PLACE, "seed")
CAUSES = ("very_short", "overshoot", "under_compression", "within_grid")
SHORT, OVERSHOOT, UNDER, WITHIN = CAUSES
ALL = "all"
SHORTEST = 3  # tokens of a very short source
FIELDS = [*RUN, "statistic", "runs", "sentences", "rival", "cause", "losses", "share", "delta"]
LABELS = {
    SHORT: "Very short source",
    OVERSHOOT: "Overshoot beyond grid",
    UNDER: "Under-compression",
    WITHIN: "Within-grid wrong pick",
    ALL: "All losses",
}
RULES = Note(
    f"The first rule that fits. Very short source: at most {SHORTEST} tokens. Overshoot: the reference's canvas (its "
    "tokens and the EOS) is below EV's smallest candidate. Under-compression: above its largest. Else within the grid."
)


class FailureBuckets(OfEvAndRatio):
    """A section for each direction; beside the paper's Ratio that with the slot for the EOS."""

    caption = (
        "Sentences on which EV scores below the fixed ratio in {metric}, by likely cause: how many, which share of "
        "all such sentences, and by how much EV scores less."
    )

    def numbers(self, params: Params) -> pd.DataFrame:
        return failure_buckets(params)

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        means = numbers[numbers["statistic"] == "mean"]
        rivals = [name for name in RIVALS if name in set(means["rival"])]
        sections = [
            _section(params, rows, f"{params.place(*place)}, N = {rows['sentences'].iloc[0]:.0f}")
            for place, rows in means.groupby(list(PLACE), sort=False)
        ]
        titles = ("Losses", "Share", f"Mean Δ {params.metric.label}")
        over = (Column(title, f"against {method(name).short}") for name in rivals for title in titles)
        cell, runs = params.cells[0], means["runs"].max()
        setting = f"{params.label('backbones', cell.backbone)}; reveal order {cell.order}, T = {cell.steps}; "
        counted = f"means over {runs} runs, each run by itself is in the CSV." if runs > 1 else "one run."
        return Table((Column("Likely cause", align="l"), *over), tuple(sections), (Note(setting + counted), RULES))


# --- The numbers.


def cause(source_tokens: int, reference_canvas: int, candidates: Sequence[int]) -> str:
    """The first of :data:`CAUSES` that fits a sentence; ``candidates`` are the lengths that EV compared.

    The reference's canvas (its tokens and the EOS) may lie below all candidates, above all, or between them.
    """
    if source_tokens <= SHORTEST:
        return SHORT
    if reference_canvas < min(candidates):
        return OVERSHOOT
    return UNDER if reference_canvas > max(candidates) else WITHIN


def failure_buckets(params: Params) -> pd.DataFrame:
    """The tidy numbers, :data:`FIELDS`: by run (``statistic`` "run"), then the mean over runs ("mean", no seed).

    ``losses``: sentences on which EV scores below the ``rival``; ``share`` of all losses; ``delta``: mean of EV minus
    the rival over them in the main metric, NaN where there is none.
    """
    runs = by_run(params.cells, RUN)
    rows = (dict(zip(RUN, run, strict=True)) | row for run, cells in runs.items() for row in _rows(params, cells))
    frame = pd.DataFrame(rows)
    groups = frame.groupby([*PLACE, "rival", "cause"], sort=False)
    means = groups[["sentences", "losses", "share", "delta"]].mean().assign(runs=groups.size()).reset_index()
    whole = pd.concat([frame.assign(statistic="run", runs=1), means.assign(statistic="mean")], ignore_index=True)
    return whole[FIELDS]


def _rows(params: Params, cells: Mapping[str, ScoredCell]) -> Iterator[dict[str, Any]]:
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
            losses = lost if name == ALL else lost[causes.loc[lost.index] == name]
            share = len(losses) / len(lost) if len(lost) else float("nan")
            numbers = {"losses": len(losses), "share": share, "delta": float(losses.mean())}
            yield {"sentences": len(scores), "rival": rival, "cause": name, **numbers}


def _causes(params: Params, ev: ScoredCell) -> pd.Series:
    """The cause that each sentence has if EV loses on it, by id."""
    tokens = read_tokens(params["tokens"][ev.name])
    canvases = {row["id"]: row["candidates"] for row in ev.canvases("candidates")}
    require_sentences(ev.within(ev.translations_file), canvases, params["tokens"][ev.name], tokens)
    return pd.Series({name: cause(x, y + 1, canvases[name]) for name, (x, y) in tokens.items()}, dtype=object)


# --- The layout.


def _section(params: Params, rows: pd.DataFrame, heading: str) -> TableSection:
    groups = []
    for cause, part in rows.groupby("cause", sort=False):
        cells = [text for row in part.itertuples(index=False) for text in _texts(params, row)]
        groups.append(
            Group(LABELS[str(cause)], (TableRow(tuple(TableCell(text, bold=cause == ALL) for text in cells)),))
        )
    return TableSection(tuple(groups), heading)


def _texts(params: Params, row: Any) -> list[str]:
    """Losses, share and mean difference; a mean over runs of whole numbers has a decimal."""
    count = f"{row.losses:.{int(row.runs > 1)}f}"
    if not row.losses:
        return [count, formats.NONE, formats.NONE]
    return [count, formats.percent(row.share, float("nan")), formats.signed(row.delta, params.metric.decimals)]
