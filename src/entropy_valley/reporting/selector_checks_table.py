"""The table of selector checks: a column for each direction, a group of rows for each check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from entropy_valley.analysis.selector_checks import PLACE, SelectorSpec
from entropy_valley.reporting import formats
from entropy_valley.reporting.methods import method, ordered
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

Numbers = Mapping[str, float]
COMPARED = {
    "ev_reassigned": "EV − reassigned ratios",
    "ev_reassigned_deciles": "EV − reassigned within deciles of |x|",
}


def selector_checks_table(spec: SelectorSpec, numbers: pd.DataFrame, provenance: Sequence[Note] = ()) -> Table:
    """Lay out :func:`analysis.selector_checks.measure`; a check that was not run has no rows."""
    places = list(dict.fromkeys(numbers[list(PLACE)].itertuples(index=False, name=None)))
    columns = (
        Column("Check", align="l"),
        Column("", align="l"),
        *(Column(spec.place(*place)) for place in places),
    )
    tests = _of(numbers, "test")
    found = [
        ("Mean all-mask entropy by ratio", _rows(places, _of(numbers, "sweep"), _entropy)),
        ("Ratios that EV takes", _rows(places, _of(numbers, "chosen"), _share)),
        (spec.metric_name, _rows(places, _of(numbers, "score"), _score, label=lambda name: method(name).label)),
        *((_compared(name), _by_seed(places, tests[tests["item"] == name])) for name in dict.fromkeys(tests["item"])),
    ]
    groups = tuple(Group(label, rows) for label, rows in found if rows)
    return Table(columns, (Section(groups),), (*_notes(spec, tests), *provenance))


def _of(numbers: pd.DataFrame, check: str) -> pd.DataFrame:
    return numbers[numbers["check"] == check]


def _compared(name: str) -> str:
    return COMPARED.get(name) or f"EV − {method(name).label}"


def _rows(
    places: Sequence[tuple[str, str]],
    numbers: pd.DataFrame,
    text: Callable[[Numbers], str],
    label: Callable[[str], str] = str,
    items: Iterable[str] | None = None,
) -> tuple[Row, ...]:
    """A row for each item: its label, then the text of its numbers in each place; a dash where there are none."""
    rows = []
    for item in ordered(numbers["item"]) if items is None else items:
        known = numbers[numbers["item"] == item]
        values = [_values(known, place) for place in places]
        texts = [text(one) if one else formats.NONE for one in values]
        rows.append(Row((Cell(label(item)), *map(Cell, texts))))
    return tuple(rows)


def _by_seed(places: Sequence[tuple[str, str]], tests: pd.DataFrame) -> tuple[Row, ...]:
    """A row for each run: runs are never pooled."""
    by_seed = tests.assign(item=tests["seed"].map(lambda seed: f"seed {seed:.0f}"))
    return _rows(places, by_seed, _test)


def _values(numbers: pd.DataFrame, place: tuple[str, str]) -> dict[str, float]:
    here = numbers[(numbers["direction"] == place[0]) & (numbers["testset"] == place[1])]
    return dict(zip(here["metric"], here["value"], strict=True))


def _entropy(values: Numbers) -> str:
    return f"{values['ratio']:.2f}: {values['entropy']:.4f}"


def _share(values: Numbers) -> str:
    return f"{values['ratio']:.2f}: {values['share']:.1%} ({values['count']:.0f})"


def _score(values: Numbers) -> str:
    return formats.mean_std(values["mean"], values["std"], formats.DECIMALS["comet22"])


def _test(values: Numbers) -> str:
    lead = formats.interval(*(values[name] for name in ("delta", "ci_low", "ci_high")), formats.DECIMALS["comet22"])
    return f"{lead}, {formats.p_statement(values['p_two_sided'], int(values['resamples']))}"


def _notes(spec: SelectorSpec, tests: pd.DataFrame) -> tuple[Note, ...]:
    """The setting, and how to read each check."""
    cell = spec.cells[0]
    counts = tests.loc[(tests["metric"] == "systems") & tests["item"].isin(COMPARED), "value"].unique()
    permutations = " or ".join(f"{count:.0f}" for count in counts)
    reassigned = (
        "Reassigned: each sentence gets the ratio L/|x| that EV took for another; its score is the mean over "
        f"{permutations} permutations, each decoded."
    )
    return (
        Note(f"{spec.label('backbones', cell.backbone)}; reveal order {cell.order}, T = {cell.steps}."),
        Note("Ratio: entropy (nats), the mean over sentences and runs: at the sweep's ends and where it is lowest."),
        Note("Ratio: share of sentences (number, mean over runs); of ratios with one canvas, the smallest counts."),
        *([Note(reassigned)] if len(counts) else []),
        Note("Differences: mean over sentences [95% bootstrap interval], two-sided p, run by run."),
    )
