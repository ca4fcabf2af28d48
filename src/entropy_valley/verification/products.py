"""Every table, figure and page made again from the sets, in a temporary folder, and compared with what is stored.

The config is that of the results, ``config.json``. What it asks for and is not there is a difference.
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

from entropy_valley import files, machine, tables
from entropy_valley.config import Experiment, load_merged
from entropy_valley.config.expand import overlay
from entropy_valley.config.matrix import sets_of
from entropy_valley.errors import brief
from entropy_valley.results import CONFIG, ENDING, record_path
from entropy_valley.settings import read_object
from entropy_valley.tables import document, live, pages, render
from entropy_valley.tables.make import make
from entropy_valley.verification.folder import MOST_BYTES, Folder, Report, Unchecked

FOLDERS = ("tables", "figures", "pages")  # of what is made again
DOCUMENT, PDF = f"{document.NAME}.tex", f"{document.NAME}.pdf"
NOISE = 1e-15  # what is smaller is 0 on another machine, unless it is a p-value
ELSEWHERE = Unchecked("figures and live.html of another machine or of other versions, which may give other bytes")
OWN = Unchecked("a config with classes of the user's own: --own-classes imports them")
FURTHER = Unchecked("files that the config does not have")
TYPESET = Unchecked("what LaTeX has made of report.tex")
TIMES = Unchecked("the table of costs: its hours are those of the jobs that had finished when it was made")
COSTS = "tables/cost"


class Product(NamedTuple):
    """A table, figure or page: its files below the results, the record last where it has one; what it reads; and
    whether ``rule all`` asks for it."""

    name: str
    files: Sequence[str]
    inputs: Callable[[], Sequence[str]]
    is_due: bool


def check(folder: Folder, report: Report, own_classes: bool) -> None:
    """Make everything again that the config asks for or that is stored, and compare it."""
    if not (folder.root / CONFIG).is_file():
        report.differ("config", CONFIG, "is not there: nothing tells which tables there should be")
        return
    with report.reading("config", folder.root / CONFIG, CONFIG), tempfile.TemporaryDirectory() as work:
        config = read_object(folder.root / CONFIG)
        if not own_classes and any(_own_classes(config)):
            report.compare("tables, figures and pages", CONFIG, "", None, OWN)
            return
        root = Path(work, "results")
        root.mkdir()
        for path in folder.root.iterdir():
            if path.name not in (*FOLDERS, DOCUMENT, live.NAME):
                (root / path.name).symlink_to(path.absolute())
        # Whether the jobs can run here is no question; whether the keys and values are right is one.
        experiment = load_merged(overlay(config, {"results": str(root)}), checked=True)
        _check_sets(folder, report, experiment)
        products = _products(experiment)
        for product in products:
            if product.is_due or any((folder.root / file).exists() for file in product.files):
                _check_product(folder, report, experiment, product, str(config["results"]))
        _check_others(folder, report, {file for product in products for file in product.files})


def _own_classes(value: Any, key: str = "") -> Iterator[str]:
    """The names of a user's own classes in a config."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _own_classes(below, name)
    elif isinstance(value, str) and key in ("method", "order", "metric") and ":" in value:
        yield value


def _check_sets(folder: Folder, report: Report, experiment: Experiment) -> None:
    """Whether each set of the config is there."""
    for one in sets_of(experiment).all:
        file = Path(one.scores(experiment.results)).relative_to(experiment.results)
        if not (folder.root / file).is_file():
            report.differ("rows", file, "is not there, but the config has this set")


def _products(experiment: Experiment) -> list[Product]:
    """What the workflow makes of a config. The comparison with the paper reads tables, and the document reads all."""
    reports, products = tables.configured(experiment), []
    for name, one in sorted(reports.items(), key=lambda item: item[1].rule == "comparison"):
        made = [f"{name}.{ending}" for ending in one.endings]
        products.append(Product(name, [*made, record_path(name).as_posix()], one.inputs, one.ready))
    for place in pages.cells(experiment):
        page = f"pages/{'.'.join(place)}.html"
        inputs = functools.partial(pages.inputs, experiment, place)
        products.append(Product(page, [page, record_path(page).as_posix()], inputs, False))
    one_page = [live.NAME, record_path(live.NAME).as_posix()]
    products.append(Product(live.NAME, one_page, functools.partial(live.inputs, experiment), False))
    return [*products, Product(DOCUMENT, [DOCUMENT], list, False)]


def _check_product(folder: Folder, report: Report, experiment: Experiment, product: Product, former_root: str) -> None:
    """Make one of them again and compare each of its files. Some name the folder of results: ``former_root``."""
    made, root = [file for file in product.files if not file.endswith(ENDING)], experiment.results
    record = folder.records.get(product.files[-1], {})
    is_from_here = record.get("facts", {}).get("machine") == machine.description()
    lacking = [file for file in product.files if not (folder.root / file).is_file()]
    for file in lacking:
        report.differ(product.name, file, "is not there")
    with report.reading(product.name, folder.root / product.name, product.name):
        make(experiment, [f"{root}/{file}" for file in made], product.inputs())
        if product.name == COSTS:
            report.compare(product.name, f"{COSTS}.csv", "", None, TIMES)
            return
        for file in made:
            if file in lacking:
                continue
            stored = files.regular(folder.root / file, MOST_BYTES).read_bytes()
            follows = Path(root, file).read_bytes()
            if file.endswith((".pdf", ".svg", ".png", live.NAME)):
                _check_bytes(report, product.name, file, stored, follows, is_from_here)
            elif file.endswith(".csv"):
                _check_numbers(report, product.name, file, stored.decode(), follows.decode())
            else:
                text = follows.decode().replace(render.escape(root), render.escape(former_root))
                _check_text(report, product.name, file, stored.decode(), text)


def _check_bytes(report: Report, part: str, file: str, stored: bytes, follows: bytes, is_from_here: bool) -> None:
    """A figure has the same bytes each time, on one machine and by one version of matplotlib, which is in its file; a
    live page by one version of zlib."""
    same_versions = file == live.NAME or matplotlib.__version__.encode() in stored
    if stored != follows and not (is_from_here and same_versions):
        report.compare(part, file, "content", None, ELSEWHERE)
    else:
        report.compare(part, file, "content", files.bytes_digest(stored), files.bytes_digest(follows))


def _check_numbers(report: Report, part: str, file: str, stored: str, follows: str) -> None:
    """Compare two CSV files cell by cell, numbers in ten digits."""
    header, *rows = csv.reader(io.StringIO(stored, newline=""))
    columns, *others = csv.reader(io.StringIO(follows, newline=""))
    report.compare(part, file, "columns", header, columns)
    report.compare(part, file, "number of rows", len(rows), len(others))
    if header != columns or len(rows) != len(others):
        return
    for line, (row, other) in enumerate(zip(rows, others, strict=True), 2):
        label = brief(" ".join(cell for cell in other if isinstance(_value(cell), str) and cell), 60)
        for column, cell, again in zip(columns, row, other, strict=True):
            within = 0.0 if "p" in column.split("_") else NOISE
            report.compare(part, file, f"row {line} ({label}), {column}", _value(cell), _value(again), within)


def _value(cell: str) -> float | str:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return number if math.isfinite(number) else cell


def _check_text(report: Report, part: str, file: str, stored: str, follows: str) -> None:
    """Compare two texts; of the first difference, line and surroundings are named."""
    pairs = enumerate(itertools.zip_longest(stored, follows))
    at = next((at for at, (before, after) in pairs if before != after), 0)
    line, around = stored.count("\n", 0, at) + 1, slice(max(0, at - 30), at + 40)
    if stored == follows:
        report.compare(part, file, "text", "", "")
    else:
        report.compare(part, file, f"line {line}", stored[around], follows[around])


def _check_others(folder: Folder, report: Report, known: set[str]) -> None:
    """What lies beside all these."""
    paths = (path for name in FOLDERS for path in (folder.root / name).rglob("*"))
    others = {path.relative_to(folder.root).as_posix() for path in paths if path.is_file()} - known
    for file in sorted(others):
        report.compare("tables, figures and pages", file, "", None, FURTHER)
    if (folder.root / PDF).exists():
        report.compare(DOCUMENT, PDF, "", None, TYPESET)
