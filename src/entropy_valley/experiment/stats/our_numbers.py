"""Our number beside one of the paper's, from the CSV file of a table of ours.

``paper/numbers.csv`` says where it is. ``table`` is the table, ``column`` a column or an expression of columns, and
``where`` the rows, as in ``method=ev;steps=32|64``: conditions in the paper's names, and the values that each allows.
``how`` says what several rows are: without it the runs, whose mean and deviation count; ``one run`` is a run that is
judged by the deviation over all; else a function of all rows. ``less`` are rows whose largest value is subtracted,
``over`` those whose lead over these divides the difference.

The table ``config`` is the config: its ``column`` is a path of keys, see :func:`.paper_comparison.settings_of`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd

from entropy_valley.experiment.stats.paper_numbers import Published, deviation

NONE = float("nan")
CONFIG = "config"  # the table of the numbers that are settings


class Ours(NamedTuple):
    """A number of ours, as the tables have it (shares, not per cent), and its deviation over runs, NaN if unknown.

    ``spread``: of a number of one run the deviation over all runs, by which it is judged; it is not the number's own.
    """

    value: float
    std: float = NONE
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
        """Our number; None where the config did not run it."""
        if number.table not in self.frames:
            return None
        values = self.values(number, number.where)
        if values.empty:
            return None
        if number.less:
            # The best of several systems is the paper's own rule, as for the ratios of its sweep.
            less = self.values(number, number.less).max()
            ours = Ours(values.max() - less)
            if number.over:
                ours = Ours(ours.value / (self.values(number, number.over).max() - less))
        elif number.how == "one run":
            # A deviation of one run is not defined: it is judged by that of all.
            all_runs = self.values(number, re.sub(";seed=[^;]*", "", number.where))
            ours = Ours(values.mean(), spread=all_runs.std())
        elif number.how:
            ours = Ours(values.agg(number.how))
        else:
            ours = Ours(values.mean(), self._deviation(number, values))
        return None if pd.isna(ours.value) else ours

    def values(self, number: Published, where: str) -> pd.Series:
        """What ``column`` says of each row that meets the conditions, of several expressions one after another; nothing
        unless each allowed value is there."""
        rows = self.frames[number.table]
        for condition in where.split(";"):
            key, _, allowed = condition.partition("=")
            # A config may call the same thing by another name.
            values = {self.names.get(value, value) for value in allowed.split("|")}
            rows = rows[rows[key].isin(values)]
            # The best, or the number, of some systems is not that of all.
            if values - {*rows[key]}:
                return pd.Series(dtype=float)
        # Tables are read as texts, so that seeds and budgets compare with the conditions.
        numeric = rows.apply(pd.to_numeric, errors="coerce").rename(columns={self.names.get("comet", "comet"): "comet"})
        return pd.concat([numeric.eval(expression) for expression in number.column.split(", ")])

    def _deviation(self, number: Published, values: pd.Series) -> float:
        """The deviation over runs: in a table of its own place, in a column beside the mean, or that of the values."""
        # The paper may print a deviation elsewhere than its mean.
        printed = deviation(number)
        if printed and printed.table:
            return self.values(printed, printed.where).mean()
        column = re.sub(r"mean\b", "std", number.column)
        if column != number.column and column.rpartition(" ")[2] in self.frames[number.table]:
            return self.values(replace(number, column=column), number.where).mean()
        return values.std()
