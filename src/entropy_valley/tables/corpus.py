"""The table of training pairs: where they come from, which were dropped, and how long translations are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from entropy_valley import files, provenance, revisions
from entropy_valley.config import Experiment, matrix
from entropy_valley.config.params import tokenizers
from entropy_valley.data.sampling import REASONS
from entropy_valley.errors import InputError
from entropy_valley.model.prompt import PERCENTILES
from entropy_valley.stats.cells import Params
from entropy_valley.stats.paper_numbers import find
from entropy_valley.tables import formats, labels
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection

SIDES = ("source", "target")
RATIOS = ("median", "mean", "pairs", *(f"p{percent}" for percent in PERCENTILES))
Direction = Mapping[str, str]  # its name, label and source, and its ``corpus.json`` (report) and ``length_ratios.json``
Values = Mapping[tuple[str, str, str], float]  # by direction, backbone and metric
WORDS = {"blank": "blank", "short": "too short", "long": "too long"}
COUNTED = (
    ("read", "Pairs read"),
    ("dropped", "Dropped"),
    *((f"dropped_{side}_{why}", f"– {side} {WORDS[why]}") for side in SIDES for why in REASONS),
    ("kept", "Kept"),
    ("train", "Training pairs"),
    ("dev", "Development pairs"),
)
RATIO = "|y|/|x| in tokens of the training pairs: median (mean)"
SPREAD = f"|y|/|x|: percentiles {', '.join(map(str, PERCENTILES))}"
CENTRE, RANGE = ("median", "mean"), [f"p{percent}" for percent in PERCENTILES]
ORDER = Note(
    "A dropped pair counts once: for the language that is first in the alphabet; blank before too short before too "
    "long."
)


class CorpusTable(TableReport):
    """A column for each direction whose pairs train a backbone; a row for each number."""

    caption = (
        "Training pairs of each direction: pairs of the source, those that the length filters dropped and why, pairs "
        "drawn; and how long translations are for their sources in tokens of each backbone: median, mean, percentiles."
    )
    scored = False

    def wanted(self, experiment: Experiment) -> bool:
        """Given adapters were trained on pairs that are not drawn here."""
        return experiment.adapters == "trained"

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        return []

    def inputs(self, experiment: Experiment) -> list[str]:
        return [path for one in self._directions(experiment) for path in (one["report"], one["ratios"])]

    def params(self, experiment: Experiment) -> dict[str, Any]:
        directions = self._directions(experiment)
        backbones = [name for one in directions for name in tokenizers(experiment, one["direction"])]
        names = [[name, experiment.backbones[name].label] for name in dict.fromkeys(backbones)]
        shown = {"directions": directions, "backbones": names, "paper": _papers_ratios(experiment, directions)}
        return {"revision": revisions.REPORTING, **shown}

    def _directions(self, experiment: Experiment) -> list[dict[str, str]]:
        return [
            {
                "direction": name,
                "label": labels.direction(name),
                "source": experiment.directions[name].train,
                "report": f"{experiment.results}/corpus/{name}/corpus.json",
                "ratios": f"{experiment.results}/corpus/{name}/length_ratios.json",
            }
            for name in dict.fromkeys(cell.run.direction for cell in matrix.all_cells(experiment))
        ]

    def numbers(self, params: Params) -> pd.DataFrame:
        return corpora(params)

    def made(self, params: Params) -> tuple[Table, pd.DataFrame]:
        numbers = self.numbers(params)
        return self.table(params, numbers), numbers

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        values = {(one.direction, one.backbone, one.metric): one.value for one in numbers.itertuples()}
        columns = (Column("", align="l"), *(Column(one["label"], align="r") for one in params["directions"]))
        ratios = TableSection((*_ratios(params, values, CENTRE, "{:.2f} ({:.2f})"), *_papers(params)), RATIO)
        spread = TableSection(_ratios(params, values, RANGE, " ".join(["{:.2f}"] * len(RANGE))), SPREAD)
        return Table(
            columns, (TableSection(_pairs(params, values), "Pairs"), ratios, spread), tuple(_notes(params, numbers))
        )


# --- The numbers.


def corpora(params: Params) -> pd.DataFrame:
    """The tidy numbers: ``direction``, ``backbone``, ``metric``, ``value``.

    Of a direction (backbone ""): ``read``, ``dropped`` and its parts ``dropped_source_short`` and the like, ``kept``,
    ``train``, ``dev``. Of each tokenizer:
    ``length_ratio_median``, ``length_ratio_mean``, ``length_ratio_pairs``, and ``length_ratio_p10`` and the like, of
    |y|/|x| of the training pairs in tokens.
    """
    rows = [row for one in params["directions"] for row in (*_counts(one), *_length_ratios(one))]
    return pd.DataFrame(rows, columns=["direction", "backbone", "metric", "value"])


def filters(direction: Direction) -> dict[str, Any]:
    """The length limits that the pairs had to be within, by language."""
    return files.read_json(direction["report"])["filters"]


def digest(direction: Direction) -> str:
    """That of the training pairs."""
    return files.read_json(direction["report"])["digest"]["train"]


def _counts(one: Direction) -> Iterator[tuple[str, str, str, float]]:
    counts = files.read_json(one["report"])["counts"]
    read, dropped = counts["read"], counts["filtered"]
    numbers = {"read": read, "dropped": dropped, **_reasons(one), "kept": read - dropped}
    for metric, value in {**numbers, "train": counts["train"], "dev": counts["dev"]}.items():
        yield one["direction"], "", metric, value


def _reasons(one: Direction) -> dict[str, int]:
    """How many pairs were dropped for each reason, from the record of their job."""
    record = provenance.record_of(one["report"])
    if record is None:
        raise InputError(one["report"], "its record is missing", "Make the corpus again.")
    languages = dict(zip(SIDES, one["direction"].split("-"), strict=True))
    return {
        f"dropped_{side}_{why}": record.facts["dropped"].get(language, {}).get(why, 0)
        for side, language in languages.items()
        for why in REASONS
    }


def _length_ratios(one: Direction) -> Iterator[tuple[str, str, str, float]]:
    for backbone, ratios in files.read_json(one["ratios"]).items():
        for name in RATIOS:
            yield one["direction"], backbone, f"length_ratio_{name}", ratios[name]


# --- The layout.


def _papers_ratios(experiment: Experiment, directions: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The medians that the paper prints, where our numbers are compared with its own."""
    if experiment.paper_comparison.compare != "values":
        return {}
    printed = {one["direction"]: find("sec:method-R", "median_ratio", direction=one["direction"]) for one in directions}
    return {direction: number.text for direction, number in printed.items() if number}


def _pairs(params: Params, values: Values) -> tuple[Group, ...]:
    """Where the pairs come from, and the numbers of :data:`COUNTED`."""
    counts = (
        _row(params, label, lambda one, key=key: _count(values[one["direction"], "", key])) for key, label in COUNTED
    )
    return (_row(params, "Source", lambda one: one["source"]), *counts)


def _ratios(params: Params, values: Values, metrics: Sequence[str], text: str) -> tuple[Group, ...]:
    """The numbers ``metrics`` of the length ratios under each tokenizer, printed as ``text``."""

    def ratio(one: Direction, backbone: str) -> str:
        keys = [(one["direction"], backbone, f"length_ratio_{metric}") for metric in metrics]
        return text.format(*map(values.get, keys)) if keys[0] in values else formats.NONE

    named = params["backbones"]
    return tuple(_row(params, label, lambda one, name=name: ratio(one, name)) for name, label in named)


def _papers(params: Params) -> Iterator[Group]:
    if params["paper"]:
        named = "LLaDA-8B-Base, in the paper"
        yield _row(params, named, lambda one: params["paper"].get(one["direction"], formats.NONE))


def _row(params: Params, label: str, text: Callable[[Direction], str]) -> Group:
    return Group(label, (TableRow(tuple(TableCell(text(one)) for one in params["directions"])),))


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _limits(language: str, units: Mapping[str, Sequence[int]]) -> list[str]:
    """The length limits of a language in words."""
    limits = [f"{low:,}–{high:,} {unit}" for unit, (low, high) in units.items()]
    return [f"{language.capitalize()} {limit}" for limit in limits or ["none"]]


def _notes(params: Params, numbers: pd.DataFrame) -> Iterator[Note]:
    limits = {text: None for one in params["directions"] for item in filters(one).items() for text in _limits(*item)}
    if limits:
        yield Note(f"Length filters, both ends included: {', '.join(limits)}.")
    yield ORDER
    for one in params["directions"]:
        yield Note(f"Training pairs of {one['label']}, N = {_drawn(one, numbers)}:", digest(one))


def _drawn(one: Direction, numbers: pd.DataFrame) -> str:
    train = numbers[(numbers["direction"] == one["direction"]) & (numbers["metric"] == "train")]
    return _count(train["value"].item())
