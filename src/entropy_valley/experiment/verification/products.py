"""Every table, figure and page made again from the sets, in a temporary folder, and compared with what is stored.

The config is that of the results, ``config.json``. What it asks for and is not there is a difference.
"""

import csv
import io
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib

from entropy_valley import files, machine
from entropy_valley.errors import brief
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import Experiment, load_merged
from entropy_valley.experiment.config.load import overlay
from entropy_valley.experiment.tables import document, live, pages, render
from entropy_valley.experiment.verification.folder import MOST_BYTES, Folder, Report, Unchecked
from entropy_valley.results import CONFIG
from entropy_valley.settings import read_object

FOLDERS = ("tables", "figures", "pages")  # of what is made again
DOCUMENT = f"{document.NAME}.tex"
NOISE = 1e-15  # what is smaller is 0 on another machine, unless it is a p-value
ELSEWHERE = Unchecked("figures and live.html of another machine or of other versions, which may give other bytes")
FURTHER = "files that the config does not have"
TIMES = Unchecked("the table of costs: its hours are those of the jobs that had finished when it was made")


def check(folder: Folder, report: Report) -> None:
    """Make everything again that the config asks for or that is stored, and compare it."""
    with report.reading("config", CONFIG), tempfile.TemporaryDirectory() as work:
        config, root = read_object(folder.root / CONFIG), Path(work, "results")
        # Nothing is written into the folder that is checked.
        root.mkdir()
        for path in folder.root.iterdir():
            if path.name not in (*FOLDERS, DOCUMENT, live.NAME):
                (root / path.name).symlink_to(path.absolute())
        # Whether the jobs can run here is no question; whether the keys and values are right is one.
        experiment = load_merged(overlay(config, {"results": str(root)}))
        # The document names its folder of results.
        here, former = (render.escape(str(path)).encode() for path in (root, config["results"]))
        # Figures have no header: they count as made where the sets were.
        is_from_here = machine.description() in [one.facts.get("machine") for one in folder.records.values()]
        further = set()
        for name in FOLDERS:
            further |= {path for path in (folder.root / name).rglob("*") if path.is_file()}
        for name, made in _products(folder, experiment):
            further -= {folder.root / file for file in made}
            with report.reading(name, name):
                tables.make(experiment, [f"{root}/{file}" for file in made])
                for file in made:
                    with report.reading(name, file):
                        before = files.read_bytes(folder.root / file, MOST_BYTES)
                        follows = (root / file).read_bytes().replace(here, former)
                        _check_file(report, name, file, before, follows, is_from_here)
        # Nothing tells what these follow from.
        report.unchecked["tables, figures and pages"][FURTHER] += len(further)


def _products(folder: Folder, experiment: Experiment) -> Iterator[tuple[str, list[str]]]:
    """The tables, figures and pages that there should be by the config, or are there: the name and the files of each.
    The comparison with the paper reads tables, and the document reads all."""
    root = folder.root
    for name, one in sorted(tables.configured(experiment).items(), key=lambda item: item[1].rule == "comparison"):
        made = [f"{name}.{ending}" for ending in one.endings]
        if one.ready or any((root / file).exists() for file in made):
            yield name, made
    others = [f"pages/{direction}.{testset}.html" for direction, testset in pages.cells(experiment)]
    for file in (*others, live.NAME, DOCUMENT):
        if (root / file).exists():
            yield file, [file]


def _check_file(report: Report, part: str, file: str, stored: bytes, follows: bytes, is_from_here: bool) -> None:
    """Compare a file with what was made again: CSV cell by cell, other texts line by line, the rest by bytes. These are
    the same each time on one machine and by one version of matplotlib, which is in its files, or of zlib."""
    if part == "tables/cost":
        report.compare(part, file, "content", None, TIMES)
        return
    if file.endswith((".pdf", ".svg", ".png", live.NAME)):
        is_alike = is_from_here and (file == live.NAME or matplotlib.__version__.encode() in stored)
        digest = files.bytes_digest(follows) if stored == follows or is_alike else ELSEWHERE
        report.compare(part, file, "content", files.bytes_digest(stored), digest)
        return
    before, after = (_rows(file, content.decode()) for content in (stored, follows))
    report.compare(part, file, "number of rows", len(before), len(after))
    # Of rows at other places each would differ.
    if len(before) != len(after):
        return
    columns = after[0] if file.endswith(".csv") else ["text"]
    for line, (row, expected) in enumerate(zip(before, after, strict=True), 1):
        place = f"row {line} ({brief(' '.join(expected), 60)})"
        for column, value, other in itertools.zip_longest(columns, row, expected, fillvalue=""):
            # Sums in another order differ in the last of ten digits, and by rounding from 0.
            within = 0.0 if "p" in column.split("_") else NOISE
            report.compare(part, file, f"{place}, {column}", _number(value), _number(other), within)


def _rows(file: str, text: str) -> list[list[str]]:
    """The cells of each row of a CSV file, with its header; the lines of any other text."""
    return [*csv.reader(io.StringIO(text))] if file.endswith(".csv") else [[line] for line in text.splitlines()]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
