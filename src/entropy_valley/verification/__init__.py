"""A second opinion on a folder of results: does every table follow from its texts?

It calls nothing that makes scores or tables, so that an error there is not made twice. Read in this order:
:mod:`.folder` (what is read, and the report), :mod:`.sets` (rows: texts, canvases, costs, scores), :mod:`.cells` (what
tables have in common), :mod:`.tables` (their rows), this file (every cell of the CSV files), :mod:`.again` (sentences
that are decoded again).

The folder may be anybody's: nothing in it is executed, and what cannot be read is an InputError.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from entropy_valley import files
from entropy_valley.results import ENDING
from entropy_valley.verification import sets, tables
from entropy_valley.verification.cells import NAN, Expected, Table
from entropy_valley.verification.folder import HEADERS, REMEDY, Folder, NotAtHandError, Report, Unchecked, text

__all__ = ["HEADERS", "Folder", "Report", "verify"]


def verify(root: Path, comet: Path | None = None) -> tuple[Folder, Report]:
    """Check a folder of results. ``comet`` is a checkpoint, where the folder has none of its own; InputError if it is
    not there."""
    if comet is not None and not comet.exists():
        raise files.not_there(comet)
    folder, report = Folder(root), Report()
    folder.check_contents(report)
    folder.check_seals(report)
    sets.check(folder, report, comet)
    for path in sorted(path for part in ("tables", "figures") for path in (folder.root / part).glob("*.csv")):
        _check_table(folder, report, path.relative_to(folder.root).as_posix())
    return folder, report


# --- Every cell of the CSV files in tables/ and figures/. A table is known by its columns: the function of its kind
# gives all of its rows again. A column that is not in one of them is not checkable.

IN_SUMMARY = "backbone direction testset order steps method metric"
KINDS: Sequence[tuple[str, Callable[..., Iterator[Expected]], str]] = (  # columns; rows; the columns that name a row
    ("panel delta_ratio", tables.hero, f"panel {IN_SUMMARY} seed"),  # the first that fits
    ("statistic cost lead", tables.study, "backbone direction testset pool method order steps statistic seed"),
    ("leads above below", tables.pooled, "backbone method"),
    ("first second wilcoxon_p", tables.significance, "backbone direction testset order steps seed first second"),
    ("against ci_low", tables.ar_reference, f"{IN_SUMMARY} against seed"),
    ("error score id", tables.points, f"{IN_SUMMARY} seed baseline canvas id"),
    ("adds share canvas", tables.dissociation, f"{IN_SUMMARY} seed baseline canvas"),
    ("delta_ratio gap_closure_mean", tables.main_table, IN_SUMMARY),
    ("case source entropies", tables.cases, "case"),
    ("rival cause share", tables.failure_buckets, "direction testset seed statistic rival cause"),
    ("block item bootstrap_seed", tables.coverage, "direction testset block item method"),
    ("check item metric value", tables.checks, "direction testset seed check item metric"),
    ("category metric value", tables.categories, "backbone direction testset steps seed category metric"),
    ("axis at low high", tables.curves, "backbone direction testset axis at"),
    ("natural_shift value", tables.dream_instruct, "backbone method metric"),
    ("part item here paper", tables.cost, "part direction testset item"),
    ("method order metric value steps", tables.orders, "backbone direction testset steps seed method order metric"),
    ("direction backbone metric value", tables.corpus, "direction backbone metric"),
)
NOT_RESULTS = {
    "hyperparams": "settings of the training, not results",
    "prompts": "settings of the decoding, not results",
    "method": "a drawing with made-up numbers",
    "paper_comparison": "the paper's numbers beside cells of other tables",
}


def _check_table(folder: Folder, report: Report, file: str) -> None:
    with files.readable(folder.root / file, "CSV file", REMEDY):
        content = files.regular(folder.root / file, files.MOST).read_text("utf-8")
        header, *lines = [*csv.reader(io.StringIO(content, newline=""))]
        stored = [dict(zip(header, line, strict=True)) for line in lines]
    with files.readable(folder.root / _record(file), "record of a table with all that it names", REMEDY):
        try:
            keys, rows = _recomputed(folder, file, header, stored)
        except NotAtHandError as reason:
            report.unchecked[file][str(reason)] += len(header) * len(stored)
            return
    columns = {column for row in rows.values() for column in row}
    for line, row in enumerate(stored, 2):
        expected = rows.pop(key := _key(row, keys), None)
        if expected is None:
            report.compare(file, file, f"row {line} ({' '.join(key)})", "a row", "no such row, or not twice")
            continue
        for column in header:
            none = NAN if column in columns else Unchecked(f"a column that verify does not know: {column}")
            value = expected.get(column, none)  # rows of one kind are empty in the columns of another
            report.compare(file, file, f"row {line} ({' '.join(filter(None, key))}), {column}", row[column], value)
    for key in rows:
        report.compare(file, file, f"row of {' '.join(filter(None, key))}", None, "a row")


def _recomputed(
    folder: Folder, file: str, header: Sequence[str], stored: Sequence[Expected]
) -> tuple[list[str], dict[tuple[str, ...], Expected]]:
    """The columns that name a row, and all rows by their values in these."""
    name = PurePosixPath(file).stem
    if _record(file) not in folder.records:
        raise NotAtHandError("a table without a record")
    if name in NOT_RESULTS:
        raise NotAtHandError(NOT_RESULTS[name])
    kind = next((kind for kind in KINDS if {*kind[0].split()} <= {*header}), None)
    if kind is None:
        raise NotAtHandError("a table that verify does not know")
    keys = [key for key in kind[2].split() if key in header]
    make = tables.faithfulness if name == "faithfulness_summary" else kind[1]
    more = (stored,) if make in (tables.cost, tables.corpus) else ()
    table = Table(folder, _record(file))
    return keys, {_key(row, keys): row for row in make(table, *more) if _belongs(file, table, row)}


def _record(file: str) -> str:
    return PurePosixPath(file).with_suffix(ENDING).as_posix()


def _belongs(file: str, table: Table, row: Expected) -> bool:
    """Some files have only a part of the rows of their kind; a figure of a summary only the main metric."""
    if file.startswith("figures/") and "panel" not in row and "id" not in row and "delta_ratio" in row:
        return row["metric"] == table.main and (file != "figures/crossbb.csv" or row["method"] == "ev")
    if file == "tables/crossbb_bleu.csv":
        return row["metric"] == "bleu"
    if file in ("figures/selector_checks.csv", "figures/entropy_valley.csv"):
        return (row["axis"] == "ratios") == (file == "figures/selector_checks.csv")
    return True


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(text(row.get(key)) for key in keys)
