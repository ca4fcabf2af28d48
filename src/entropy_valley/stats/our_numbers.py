"""Our number beside one of the paper's, from the CSV file of a table of ours.

``paper/numbers.csv`` says where it is. ``table`` is the table, ``column`` a column or an expression of columns, and
``where`` the rows, as in ``method=ev;steps=32|64``: conditions in the paper's names, and the values that each allows.
``how`` says what several rows are: without it the runs, whose mean and deviation count; ``one run`` is a run that is
judged by the deviation over all; else a function of all rows. ``less`` are rows whose largest value is subtracted,
``over`` those whose lead over these divides the difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd

from entropy_valley.errors import InputError
from entropy_valley.stats.paper_numbers import Published, deviation

NONE = float("nan")


class Ours(NamedTuple):
    """A number of ours, as the tables have it (shares, not per cent), and its deviation over runs, NaN if unknown.

    ``spread``: of a number of one run the deviation over all runs, by which it is judged; it is not the number's own.
    """

    value: float
    std: float
    spread: float = NONE


@dataclass(frozen=True)
class OurTables:
    """The CSV files of a config by their names, with texts as values; and its names for those of the paper's config.

    Beside names of the config, ``comet`` stands for the main metric, ``T`` for the steps of the tables, and ``run A``,
    ``run B`` … for the seeds of the main backbone.
    """

    frames: Mapping[str, pd.DataFrame]
    names: Mapping[str, str]

    def ours(self, number: Published) -> Ours | None:
        """Our number; None where the config did not run it.

        Raises :class:`KeyError` for a number that no table of ours has, :class:`InputError` where a table has other
        columns than expected, or several rows for a run.
        """
        if not number.table:
            raise KeyError(number.key)
        if number.table not in self.frames:
            return None
        rows = self.rows(number, number.where)
        values = self.values(number, rows)
        if values.empty:
            return None
        if number.less:
            less = self.values(number, self.rows(number, number.less)).max()
            difference = values.max() - less
            if number.over:
                difference /= self.values(number, self.rows(number, number.over)).max() - less
            return _available(Ours(difference, NONE))
        if number.how == "one run":
            all_runs = re.sub(";seed=[^;]*", "", number.where)
            return _available(Ours(values.mean(), NONE, self.values(number, self.rows(number, all_runs)).std()))
        if number.how:
            return _available(Ours(values.agg(number.how), NONE))
        return _available(Ours(values.mean(), self._deviation(number, rows, values)))

    def rows(self, number: Published, where: str) -> pd.DataFrame:
        """The rows that meet the conditions; none unless each allowed value is there."""
        rows = self.frames[number.table]
        for condition in where.split(";"):
            key, _, allowed = condition.partition("=")
            if key not in rows:
                raise self._misfit(number, f"no column {key}")
            values = {self.names.get(value, value) for value in allowed.split("|")}
            rows = rows[rows[key].isin(values)]
            if values - {*rows[key]}:
                return rows.head(0)
        runs = rows[[key for key in ("backbone", "direction", "testset", "seed") if key in rows]]
        if not number.how and runs.duplicated().any() and not number.less:
            raise self._misfit(number, f"several rows of a run with {where}")
        return rows

    def values(self, number: Published, rows: pd.DataFrame) -> pd.Series:
        """What ``column`` says of each row; of several expressions one after another."""
        if rows.empty:
            return pd.Series(dtype=float)
        numeric = rows.apply(pd.to_numeric, errors="coerce").rename(columns={self.names["comet"]: "comet"})
        try:
            return pd.concat([numeric.eval(expression) for expression in number.column.split(", ")])
        except NameError as error:
            raise self._misfit(number, str(error)) from None

    def _deviation(self, number: Published, rows: pd.DataFrame, values: pd.Series) -> float:
        """The deviation over runs: in a table of its own place, in a column beside the mean, or that of the values."""
        printed = deviation(number)
        if printed and printed.table:
            return self.values(printed, self.rows(printed, printed.where)).mean()
        column = re.sub(r"mean\b", "std", number.column)
        if column != number.column and column.rpartition(" ")[2] in rows:
            return self.values(replace(number, column=column), rows).mean()
        return values.std()

    def _misfit(self, number: Published, problem: str) -> InputError:
        place = f"its columns do not have {number.label} {number.metric}: {problem}"
        return InputError(f"{number.table}.csv", place, "Make this table again.")


def _available(ours: Ours) -> Ours | None:
    """None where no number is there."""
    return None if pd.isna(ours.value) else ours


WHY_NOT = {  # by the beginnings of metrics
    ("parameters_", "size_", "vocabulary_thousand", "pretraining_"): "a fact about the released checkpoint",
    ("gpu_memory",): "their hardware",
    ("accumulation", "micro_batch"): "a batch is divided by its tokens",
    ("case_",): "in the table cases, if `tables.cases` names its sentence",
    ("minutes_", "sittings_"): "up to the annotators",
    ("columns", "flip", "scale_"): "fixed in the form",
    ("version_",): "in the signatures below each table",
    ("steps_logged", "loss_after_"): "only in losses.csv beside the adapter",
}


def why_not(number: Published) -> str:
    """Why there is no number of ours beside one of the paper's."""
    return next((why for metrics, why in WHY_NOT.items() if number.metric.startswith(metrics)), "no table has it")
