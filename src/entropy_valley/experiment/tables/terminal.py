"""The numbers of a finished table or figure on the terminal."""

import io
import shutil
import sys
from pathlib import Path

import pandas as pd

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.texts import shown

LOG = 160  # characters of a line in a log, which has no right edge
LABEL, LONGEST = 30, 60  # characters of a text that names a row, and of any in print


def show(path: str | Path) -> None:
    """Print the CSV file of a table, whichever of its files ``path`` names."""
    path = Path(path).with_suffix(".csv")
    text = "\n".join(files.read_lines(path))
    try:
        table = pd.read_csv(io.StringIO(text), na_values=[""], keep_default_na=False).rename(columns=shown)
    except pd.errors.ParserError:
        raise InputError(path, "is no table of results", "Name a file of results/tables.") from None
    table = table.dropna(axis="columns", how="all") if len(table) else table
    for name in table.select_dtypes("object"):
        table[name] = table[name].fillna("").astype(str).map(shown)

    # What all rows have stands once, above the table.
    for name in table if len(table) > 1 else ():
        if table[name].nunique(dropna=False) == 1:
            print(f"{name}: {table.pop(name).iloc[0]}")

    # The first texts, if short, say what a row is: they stand again beside each part of a table that is too wide.
    names = []
    for name, column in table.items():
        if column.dtype != object or column.str.len().max() > LABEL:
            break
        names.append(name)
    table = table.set_index(names) if names else table
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else LOG
    with pd.option_context("display.unicode.east_asian_width", True, "display.max_colwidth", LONGEST):
        print(table.to_string(line_width=width, float_format=_number, na_rep=""))


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
