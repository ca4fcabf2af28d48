"""Every table, figure and page made again from the sets, in a temporary folder, and compared with what is stored.

The config is that of the results, ``config.json``. What it asks for and is not there is a difference.
"""

from __future__ import annotations

import csv
import io
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

from entropy_valley import files, machine, tables
from entropy_valley.config import Experiment, load_merged
from entropy_valley.config.expand import overlay
from entropy_valley.config.matrix import sets_of
from entropy_valley.errors import brief
from entropy_valley.results import CONFIG, record_path
from entropy_valley.settings import read_object
from entropy_valley.tables import document, live, pages, render
from entropy_valley.tables.make import make
from entropy_valley.verification.folder import MOST_BYTES, Folder, Report, Unchecked

FOLDERS = ("tables", "figures", "pages")  # of what is made again
DOCUMENT = f"{document.NAME}.tex"
DRAWN = (".pdf", ".png", ".gz")
DRAWN_ELSEWHERE = Unchecked("drawn or packed on another machine, or by other versions: the numbers are compared")
OWN = Unchecked("a config that names classes of the user's own: --own-classes imports them from here")
TYPESET = Unchecked("what LaTeX has made of report.tex")


class Product(NamedTuple):
    """The files of a table, figure or page below the results, its record last where it has one; what it reads; and
    whether ``rule all`` asks for it."""

    name: str
    files: Sequence[str]
    inputs: Sequence[str]
    is_due: bool


def check(folder: Folder, report: Report, own_classes: bool) -> None:
    """Make everything again that the config has and that is stored, and compare it."""
    if not (folder.root / CONFIG).is_file():
        report.differ("config", CONFIG, "is not there, so no table can be made again")
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
        experiment = load_merged(overlay(config, {"results": str(root)}), checked=True)
        for one in sets_of(experiment).all:
            file = Path(one.scores(str(root))).relative_to(root)
            if not (folder.root / file).is_file():
                report.differ("rows", file, "is not there, but the config has this set")
        texts = {str(root): str(config["results"])}  # what the document says of its place
        known = set()
        for product in _products(experiment, folder.root):
            known |= {*product.files}
            if product.is_due or any((folder.root / file).exists() for file in product.files):
                _check_product(folder, report, experiment, product, root, texts)
        _check_others(folder, report, known)


def _own_classes(value: Any, key: str = "") -> Iterator[str]:
    """The names of a user's own classes in a config."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _own_classes(below, name)
    elif isinstance(value, str) and key in ("method", "order", "metric") and ":" in value:
        yield value


def _products(experiment: Experiment, stored: Path) -> Iterator[Product]:
    """What the workflow makes of a config; the comparison with the paper reads tables, and the document reads all."""
    reports = tables.configured(experiment)
    for name, one in sorted(reports.items(), key=lambda item: item[1].rule == "comparison"):
        made = [f"{name}.{ending}" for ending in one.endings]
        yield Product(name, [*made, record_path(name).as_posix()], one.inputs(), one.ready)
    for place in pages.cells(experiment):
        page = f"pages/{'.'.join(place)}.html"
        yield Product(page, [page, record_path(page).as_posix()], pages.inputs(experiment, place), False)
    if (stored / live.NAME).exists():  # few configs have one
        yield Product(live.NAME, [live.NAME, record_path(live.NAME).as_posix()], live.inputs(experiment), False)
    yield Product(DOCUMENT, [DOCUMENT], [], False)


def _check_product(
    folder: Folder, report: Report, experiment: Experiment, product: Product, root: Path, texts: dict[str, str]
) -> None:
    """Make one of them again, and compare each of its files."""
    missing = [file for file in product.files if not (folder.root / file).is_file()]
    for file in missing:
        report.differ(product.name, file, "is not there")
    made = [file for file in product.files if not file.endswith(".json")]
    record = folder.records.get(product.files[-1], {})
    here = record.get("facts", {}).get("machine") == machine.description()
    with report.reading(product.name, folder.root / product.name, product.name):
        make(experiment, [str(root / file) for file in made], product.inputs)
        for file in made:
            if file not in missing:
                _check_file(report, product.name, folder.root, file, root / file, here, texts)


def _check_file(
    report: Report, part: str, stored_root: Path, file: str, new: Path, here: bool, texts: dict[str, str]
) -> None:
    stored = files.regular(stored_root / file, MOST_BYTES).read_bytes()
    follows = new.read_bytes()
    if new.suffix == ".csv":
        _check_numbers(report, part, file, stored.decode(), follows.decode())
    elif stored == follows:
        report.compare(part, file, "content", True, True)
    elif new.suffix in (".pdf", ".png") or new.name == live.NAME:
        same_versions = new.name == live.NAME or matplotlib.__version__.encode() in stored
        content = "a drawing" if here and same_versions else DRAWN_ELSEWHERE
        report.compare(part, file, "content", "other bytes", content)
    else:
        text = follows.decode()
        for before, after in texts.items():
            text = text.replace(render.escape(before), render.escape(after))
        _check_text(report, part, file, stored.decode(), text)


def _check_numbers(report: Report, part: str, file: str, stored: str, follows: str) -> None:
    """Compare two CSV files cell by cell, numbers in ten digits."""
    (header, *rows), (columns, *others) = (list(csv.reader(io.StringIO(text, newline=""))) for text in (stored, follows))
    report.compare(part, file, "columns", header, columns)
    report.compare(part, file, "number of rows", len(rows), len(others))
    if header != columns or len(rows) != len(others):
        return
    for number, (row, other) in enumerate(zip(rows, others, strict=True), 2):
        label = " ".join(cell for cell in other if cell and _number(cell) is None)
        for column, value, again in zip(columns, row, other, strict=True):
            report.compare(part, file, f"row {number} ({brief(label, 60)}), {column}", _value(value), _value(again))


def _value(cell: str) -> float | str:
    number = _number(cell)
    return cell if number is None or not math.isfinite(number) else number


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _check_text(report: Report, part: str, file: str, stored: str, follows: str) -> None:
    """Compare two texts; the first character that differs is named by its line."""
    if stored == follows:
        report.compare(part, file, "text", True, True)
        return
    at = next((at for at, pair in enumerate(zip(stored, follows, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(stored), len(follows)) if at is None else at
    line, start = stored.count("\n", 0, at) + 1, max(0, at - 30)
    report.compare(part, file, f"line {line}", stored[start : at + 30], follows[start : at + 30])


def _check_others(folder: Folder, report: Report, known: set[str]) -> None:
    """Files beside them that the config does not have."""
    for name in FOLDERS:
        for path in sorted((folder.root / name).rglob("*")):
            file = path.relative_to(folder.root).as_posix()
            if path.is_file() and file not in known:
                other = Unchecked("files beside tables, figures and pages that the config does not have")
                report.compare(name, file, "", None, other)
    if (folder.root / "report.pdf").exists():
        report.compare(name, "report.pdf", "", None, TYPESET)
