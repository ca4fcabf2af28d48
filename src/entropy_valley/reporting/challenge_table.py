"""The table of two reveal orders on a challenge subset: a row for each category of the source, and all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from entropy_valley.analysis.challenge import OVERALL, ChallengeSpec
from entropy_valley.analysis.order_sweep import RUN
from entropy_valley.reporting import formats
from entropy_valley.reporting.order_table import lead, run_heading
from entropy_valley.reporting.orders import order_label
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table


def challenge_table(spec: ChallengeSpec, numbers: pd.DataFrame, provenance: Sequence[Note] = ()) -> Table:
    """Lay out :func:`analysis.challenge.negative_order`, a section for each run."""
    other, main = (order_label(name, spec.orders[name]) for name in (spec.other, spec.main))
    sections, correlations = [], []
    for key, group in numbers.groupby(list(RUN), sort=False):
        found: dict[str, dict[str, float]] = {}
        for row in group.itertuples(index=False):
            found.setdefault(row.category, {})[row.metric] = row.value
        heading = run_heading(spec, key, found[OVERALL]["sentences"])
        sections += [Section(tuple(_category(spec, name, found[name]) for name in found if name != OVERALL), heading)]
        sections += [Section((_category(spec, OVERALL, found[OVERALL]),))]
        correlations.append(_correlation(f"{other} − {main}", heading, found[OVERALL]))
    titles = (spec.metric_name + " " + name for name in (other, main))
    columns = (
        Column("Category", align="l"),
        Column("N", align="r"),
        *map(Column, (*titles, f"Δ ({other} − {main}) [95 % CI]", "p")),
    )
    return Table(columns, tuple(sections), (*_notes(), *correlations, *provenance))


def _category(spec: ChallengeSpec, name: str, found: Mapping[str, float]) -> Group:
    count, bold = f"{found['sentences']:.0f}", name == OVERALL
    texts = [count, *[formats.NONE] * 4]
    if found["sentences"]:
        p = formats.p_value(found["p_two_sided"], spec.resamples)
        texts = [count, f"{found['other']:.4f}", f"{found['main']:.4f}", lead(found), p]
    return Group(name.capitalize(), (Row(tuple(Cell(text, bold) for text in texts)),))


def _correlation(difference: str, heading: str, found: Mapping[str, float]) -> Note:
    rho = found["spearman_rho"]
    what = f"Spearman's ρ of a sentence's SIG-Concentration and its {difference}"
    values = (
        formats.NOT_AVAILABLE
        if pd.isna(rho)
        else f"{formats.signed(rho, 4)}, two-sided p = {found['spearman_p']:.4f}, N = {found['sentences']:.0f}"
    )
    return Note(f"{what}: {values} ({heading}).")


def _notes() -> tuple[Note, ...]:
    return (
        Note("The canvas has the reference's length. A sentence may be in several categories of its source."),
        Note("Δ: mean difference over sentences, percentile bootstrap; p two-sided."),
        Note(
            "SIG-Concentration: share of the total SIG of the all-mask canvas that the top 20 % of its slots have; our "
            "definition."
        ),
    )
