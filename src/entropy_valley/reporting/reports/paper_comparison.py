"""Every number of the paper beside ours, or where these are of other models, the signs and orders of its claims."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files, revisions
from entropy_valley.analysis.our_numbers import places
from entropy_valley.analysis.paper_comparison import DEVIATIONS, ComparisonParams, compare
from entropy_valley.analysis.published import FOLDER, Published
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.experiment.schema import metrics_of
from entropy_valley.late import pandas as pd
from entropy_valley.reporting import formats, html, labels, tables
from entropy_valley.reporting.report import OfTables
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

TITLE = "The paper's numbers and those of this config"
COLUMNS = (
    Column("What", align="l"),
    Column("Paper", align="r"),
    Column("Here", align="r"),
    Column("Difference", align="r"),
    Column("Verdict", align="l"),
)
SIGNS = Note(
    "Other models, data or metrics than the paper's: sizes cannot be compared. Below are only the signs of differences "
    "and the orders of systems."
)
VALUES = Note(
    f"equal: as far as the paper prints it. within, outside: at most, or more than, {DEVIATIONS} sample standard "
    "deviations over runs, the larger of the paper's and ours. differs: neither has one. holds, fails: of a bound."
)
CLAIMS = Note(
    "same, other: the sign, or the order of systems from the largest value down. k of n pairs: that many pairs of "
    "systems which differ in the paper are in its order here."
)
ABSENT = Note("not run: this config did not ask for it. not compared: no table here has it.")


class PaperComparison(OfTables):
    """A section for each label of the paper, a row for each number. It waits for no study that the config has not."""

    caption = (
        "Each number that the paper prints, beside the number of this config: the difference, and whether it is within "
        "the spread over runs. Where models, data or metrics are others, the signs and orders of its claims."
    )
    parsed = ComparisonParams  # type: ignore[assignment]
    rule, endings, scored = "comparison", ("html", "md", "csv"), False

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        """Those of the main table, which any config has."""
        asked = experiment.paper_comparison.compare
        return matrix.table_cells(experiment, experiment.tables.backbone) if asked else []

    def inputs(self, experiment: Experiment) -> list[str]:
        return list(self._files(experiment).values())

    def _files(self, experiment: Experiment) -> dict[str, str]:
        return self.csv_files(experiment, (place.table for place in places()))

    def params(self, experiment: Experiment) -> dict[str, Any]:
        settings, metric, seeds = experiment.paper_comparison, metrics_of(experiment.scoring)[0], experiment.matrix
        backbone = experiment.tables.backbone
        return {
            "revision": revisions.REPORTING,
            "transcription": [files.file_digest(FOLDER / name) for name in ("numbers.csv", "places.csv")],
            "tables": self._files(experiment),
            "names": settings.names,
            "metric": metric.name,
            "metric_label": metric.label,
            "paper_label": ComparisonParams.paper_label,
            "steps": experiment.tables.steps,
            "seeds": seeds.seeds_of.get(backbone, seeds.seeds),
            "values": settings.compare == "values",
        }

    def numbers(self, params: Any) -> pd.DataFrame:
        return compare(params)

    def make(self, params: Any, **paths: Path) -> None:
        numbers = self.numbers(params)
        table = self.table(params, numbers)
        files.write_text(paths["html"], html.page(TITLE, table))
        files.write_text(paths["md"], tables.to_markdown(table))
        tables.write_csv(paths["csv"], numbers)

    def table(self, params: ComparisonParams, numbers: pd.DataFrame) -> Table:
        sections = tuple(
            Section(tuple(_groups(params, rows.to_dict("records"))), _heading(str(label)))
            for label, rows in numbers.groupby("label", sort=False)
        )
        ours = Note(
            f"{params.paper_label} is the paper's metric; the column Here has {params.metric_label} in its place."
        )
        notes = (*[ours] * (params.metric_label != params.paper_label), *_summary(numbers), CLAIMS, ABSENT)
        return Table(COLUMNS, sections, (VALUES if params.values else SIGNS, *notes))


def _summary(numbers: pd.DataFrame) -> Iterator[Note]:
    """How many comparisons had which verdict."""
    names = {"value": "Values", "sign": "Signs", "order": "Orders"}
    for kind, rows in numbers.groupby("kind", sort=False):
        verdicts = Counter("in part" if verdict.endswith("pairs") else verdict for verdict in rows["verdict"])
        yield Note(
            f"{names[str(kind)]}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.most_common())}."
        )


def _heading(label: str) -> str:
    """The paper's label, and the tables here that have its numbers."""
    here = dict.fromkeys(place.table for place in places() if label in place.label.split())
    return f"{label} (here: {', '.join(here)})" if here else label


def _groups(params: ComparisonParams, rows: Sequence[dict[str, Any]]) -> Iterator[Group]:
    for row in rows:
        cells = _order(row) if row["kind"] == "order" else _number(row)
        bold = row["verdict"] in ("outside", "fails", "other") or row["verdict"].endswith("pairs")
        yield Group(_described(params, row), (Row((*cells, Cell(row["verdict"], bold=bold))),))


def _described(params: ComparisonParams, row: dict[str, Any]) -> str:
    """``En→Zh, T=64, EV: COMET-22``."""
    metric = row["metric"].replace("x100", "× 100").replace("_", " ")
    metric = metric.replace("comet", params.paper_label).replace("bleu", "BLEU")
    parts = [
        row["backbone"] if row["backbone"] != "llada-8b" else "",
        labels.direction(row["direction"]) if row["direction"] else "",
        row["setting"],
        _system(row["system"]),
    ]
    named = ", ".join(part for part in parts if part)
    return f"{named}: {row['what'] or metric}" if named else row["what"] or metric


def _system(name: str) -> str:
    """``ev-ratio`` as EV − Ratio."""
    return " − ".join(labels.ORDERS.get(one) or labels.method(one).short for one in name.split("-")) if name else ""


def _order(row: dict[str, Any]) -> list[Cell]:
    names = (re.split(" ([>=]) ", row[name]) for name in ("text", "ours_text"))
    texts = (" ".join(part if part in (">", "=") else _system(part) for part in parts) for parts in names)
    return [*(Cell(text or formats.NONE) for text in texts), Cell("")]


def _number(row: dict[str, Any]) -> list[Cell]:
    number = Published(*(row[key] for key in ("label", "backbone", "direction", "setting", "system", "metric", "text")))
    paper = formats.minus(number.text)
    if not pd.isna(row["paper_std"]):
        paper = f"{paper.removesuffix(number.unit)} ± {row['paper_std']:.{number.decimals}f}{number.unit}"
    if pd.isna(row["ours"]):
        return [Cell(paper), Cell(formats.NONE), Cell(formats.NONE)]
    bound = number.relation in ("<", "≤")
    difference = formats.NONE if bound or row["kind"] == "sign" else _printed(number, row["difference"], "+")
    ours = _printed(number, row["ours"], "+" if number.signed else "", row["ours_std"])
    return [Cell(paper), Cell(ours), Cell(difference)]


def _printed(number: Published, value: float, sign: str, std: float = float("nan")) -> str:
    """In the paper's decimals and unit."""
    kind = f".{number.decimals}{'f' if number.exponent is None else 'e'}"
    spread = "" if pd.isna(std) else f" ± {std:{kind}}"
    return formats.minus(f"{value:{sign}{kind}}") + spread + number.unit
