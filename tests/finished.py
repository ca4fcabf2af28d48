"""A finished run, of which the tests make every table, figure and page.

``tables/finished`` has its config, the results that reports read, and ``golden``: what is made of them. After a change
of what jobs write, make the run again (about ten minutes on one core); after a change of tables alone, ``golden``:

    PYTHONPATH=src:tests python tests/finished.py
    PYTHONPATH=src:tests python tests/finished.py golden
"""

import dataclasses
import functools
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import figure

from entropy_valley import files, results
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import Experiment, base_files, params
from entropy_valley.experiment.config.load import load_merged, merge, overlay
from entropy_valley.experiment.config.matrix import Cell, sets_of
from entropy_valley.experiment.tables import document, pages
from entropy_valley.experiment.tables.render import Shown
from entropy_valley.experiment.tables.report import Results
from entropy_valley.results import SCORES, TRANSLATIONS, System, record_path, system_of, tidy

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests/tables/finished"
CONFIG, RESULTS, GOLDEN = (FOLDER / name for name in ("config.yaml", "results", "golden"))
METRIC = "toy_comet"  # the main one, whose mean over rows is the system's
Row = Mapping[str, Any]


@functools.cache
def config() -> dict[str, Any]:
    return merge([*base_files(ROOT), CONFIG])


class Run:
    """The finished run in a folder of its own, whose results a test may change; ``over`` is laid over its config."""

    def __init__(self, folder: Path, **over: Any) -> None:
        self.root = folder / "results"
        self.experiment = load_merged(overlay(config(), over | {"results": str(self.root)}), further=tables.problems)
        if not self.root.exists():
            shutil.copytree(_fitting().name, self.root, dirs_exist_ok=True)
            if over:  # with fewer directions, models are pre-trained otherwise
                fit(self.root, self.experiment, "made_from")

    # What is made.

    def report(self, name: str) -> Any:
        """A report of the config, ``tables/main``."""
        return tables.configured(self.experiment)[name]

    def make(self, name: str) -> dict[str, Path]:
        """Make a report; its files by ending."""
        report = self.report(name)
        outputs = {ending: self.root / f"{name}.{ending}" for ending in report.endings}
        report.write(list(map(str, outputs.values())))
        return outputs

    @property
    def results(self) -> Results:
        return Results(self.root)

    def table(self, name: str) -> Shown:
        """A table before it is laid out."""
        return self.report(name).shown(self.results)

    def figure(self, name: str) -> figure.Figure:
        """A figure as it is drawn."""
        return self.report(name).shown(self.results).draw()

    def text(self, name: str) -> str:
        """A table, as Markdown."""
        return self.make(name)["md"].read_text(encoding="utf-8")

    def rows(self, name: str) -> list[list[str]]:
        """The texts of each row of a table, with its label."""
        lines = [line for line in self.text(name).splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]

    def numbers(self, name: str) -> pd.DataFrame:
        """The numbers of a table or figure."""
        return pd.read_csv(self.make(name)["csv"])

    def make_page(self, place: tuple[str, str]) -> Path:
        """Make the page of the sentences of a direction and test set."""
        path = self.root / "pages" / f"{'.'.join(place)}.html"
        pages.write(self.experiment, place, path)
        return path

    def make_document(self) -> Path:
        """Make the document of all tables and figures, which are there."""
        path = self.root / "report.tex"
        document.write(self.experiment, tables.configured(self.experiment), path)
        return path

    # What it is made of, and changes of it.

    def cells(self, name: str) -> list[Cell]:
        """The cells of a report."""
        return list(self.report(name).cells)

    def path(self, cell: Cell, file: str) -> Path:
        """A file of the set where a cell is at home."""
        return Path(sets_of(self.experiment).home[cell].folder(self.experiment.results), file)

    def read(self, cell: Cell, file: str) -> list[dict[str, Any]]:
        """The rows that a file has of a cell."""
        return _read(self.path(cell, file))[system_of(cell)][0]

    def entry(self, cell: Cell, file: str) -> dict[str, Any]:
        """What the header of a file has of a cell."""
        return _read(self.path(cell, file))[system_of(cell)][1]

    def put(self, cell: Cell, file: str, rows: Sequence[Row] | None = None, **entry: Any) -> None:
        """Write rows of a cell in the place of its own, and keys of its entry in the header; None removes a key. With
        rows of scores, the score of the system is their mean. The headers fit what is written."""
        path = self.path(cell, file)
        systems = _read(path)
        before, known = systems[system_of(cell)]
        if file == SCORES and rows and all(isinstance(row.get(METRIC), float) for row in rows):
            entry = {METRIC: float(np.mean([row[METRIC] for row in rows])), **entry}
        changed = {key: value for key, value in (known | entry).items() if value is not None}
        systems[system_of(cell)] = (before if rows is None else list(rows), changed)
        files.write_jsonl(path, tidy({system: rows for system, (rows, _) in systems.items()}))
        facts = [{**system._asdict(), **one} for system, (_, one) in systems.items()]
        for name in (TRANSLATIONS, SCORES):
            self._record(path.with_name(name), {"cells": facts} if name == file else {})

    def score(self, cell: Cell, *scores: float, **entry: Any) -> None:
        """Give the sentences of a cell these scores, again and again."""
        rows = self.read(cell, SCORES)
        self.put(cell, SCORES, [row | {METRIC: scores[at % len(scores)]} for at, row in enumerate(rows)], **entry)

    def replace(self, path: Path, content: Any) -> None:
        """Write another result in the place of one, a list as JSON Lines; the records fit it."""
        (files.write_jsonl if isinstance(content, list) else files.write_json)(path, content)
        self._record(path, {})
        own = f"{config()['results']}/{path.relative_to(self.root)}"  # as records of what was made of it call it
        for place in all_records(self.root):
            record = results.read_record(place)
            if own in record.inputs:
                others = {name: digest for name, digest in record.inputs.items() if name != own}
                dataclasses.replace(record, inputs=others).write(place)

    def _record(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Write the header of a file again, if it has one: of what it was made is no longer told."""
        for place in _records(path):
            record = results.read_record(place)
            if path.name in record.outputs:
                outputs = record.outputs | {path.name: {"digest": files.file_digest(path)}}
                dataclasses.replace(record, inputs={}, outputs=outputs, facts=record.facts | facts).write(place)
                return


@functools.cache
def _fitting() -> tempfile.TemporaryDirectory[str]:
    """The results, with params as the config has them now: a key of a config that is new repeats no run for it."""
    folder = tempfile.TemporaryDirectory()
    shutil.copytree(RESULTS, folder.name, dirs_exist_ok=True)
    fit(Path(folder.name), load_merged(config(), further=tables.problems))
    return folder


def fit(root: Path, experiment: Experiment, *keys: str) -> None:
    """Let the headers behind sets have these params as a config has them now; without keys all of them."""
    for one in sets_of(experiment).all:
        for testset in one.testsets:
            for path, spec in params.specs_behind(experiment, one, testset).items():
                place = results.record_path(results.moved(path, experiment.results, str(root)))
                if record := results.read_record(place):
                    wanted = {key: value for key, value in json.loads(spec).items() if not keys or key in keys}
                    kept = {key: value for key, value in record.params.items() if keys or key == "cells"}
                    if record.params != (fitted := wanted | kept if not keys else kept | wanted):
                        dataclasses.replace(record, params=fitted).write(place)


def all_records(root: Path) -> list[Path]:
    """Every header in a folder of results."""
    headers = (place for name in (TRANSLATIONS, SCORES) for place in root.rglob(record_path(name).name))
    return [*root.rglob(f"*{results.ENDING}"), *headers]


def _records(path: Path) -> list[Path]:
    """The headers in the folder of a file, its own first."""
    own = results.record_path(path)
    return [*[own] * own.is_file(), *sorted(path.parent.glob(f"*{results.ENDING}"))]


def _read(path: Path) -> dict[System, tuple[list[dict[str, Any]], dict[str, Any]]]:
    """The rows and the entry of each cell."""
    found: dict[System, tuple[list[dict[str, Any]], dict[str, Any]]] = {}
    for entry in files.read_json(record_path(path))["facts"]["cells"]:
        found[System(*(entry.pop(key) for key in System._fields))] = ([], entry)
    for row in files.read_jsonl(path) if path.stat().st_size else []:
        found[System(*(row.pop(key) for key in System._fields))][0].append(row)
    return found


# --- What is compared: of each report its numbers and what a reader of plain text sees, of one table all layouts.

KEPT = ("csv", "md")
ALL_LAYOUTS, COMPARISON = "tables/main", "tables/paper_comparison"


def make_all(run: Run) -> dict[str, str]:
    """Make every report, every page and the document; what is compared of them, by file."""
    texts = {}
    for name in sorted(tables.configured(run.experiment), key=COMPARISON.__eq__):  # which reads the others
        for ending, path in run.make(name).items():
            assert path.stat().st_size > 100 or ending == "csv", path
            if ending in KEPT or name == ALL_LAYOUTS:
                texts[f"{name}.{ending}"] = path.read_text(encoding="utf-8")
    for place in pages.cells(run.experiment):
        path = run.make_page(place)
        data = re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1]
        page = json.loads(data)
        sentences = page.pop("sentences")
        lines = [json.dumps(part, ensure_ascii=False) for part in (page, *sentences)]
        texts[f"pages/{path.stem}.jsonl"] = "".join(f"{line}\n" for line in lines)
    text = run.make_document().read_text(encoding="utf-8")
    return texts | {"report.tex": text.replace(str(run.root).replace("_", r"\_"), "results")}


def golden() -> dict[str, str]:
    """What :func:`make_all` is compared with."""
    paths = sorted(path for path in GOLDEN.rglob("*") if path.is_file())
    return {path.relative_to(GOLDEN).as_posix(): path.read_text(encoding="utf-8") for path in paths}


# --- Making it again.

TIMED = ("train", "pretrain", "translate", "score", "diagnose", "latency", "corpus")  # rules whose times are kept


def run_workflow(work: Path) -> Path:
    """Run the workflow; the folder of its results."""
    options = ["-s", ROOT / "Snakefile", "--directory", work, "--cores", "1", "--configfile", CONFIG]
    subprocess.run([sys.executable, "-m", "snakemake", *map(str, options), "--", "all", "pages"], check=True)
    return work / config()["results"]


def keep(finished: Path) -> None:
    """Copy what the reports of a run read, with the records beside it. Weights, training pairs and what is not a result
    are left out, of the records too."""
    shutil.rmtree(RESULTS, ignore_errors=True)
    for path in sorted(set(_read_by_reports(finished))):
        place = RESULTS / path.relative_to(finished)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    for place in all_records(RESULTS):
        record = results.read_record(place)
        outputs = {name: output for name, output in record.outputs.items() if (place.parent / name).is_file()}
        inputs = {name: digest for name, digest in record.inputs.items() if not Path(name).is_absolute()}
        dataclasses.replace(record, outputs=outputs, inputs=inputs).write(place)


def _read_by_reports(finished: Path) -> Iterator[Path]:
    """The files that the reports of a finished run read, and the records beside them."""
    experiment = load_merged(overlay(config(), {"results": str(finished)}), further=tables.problems)
    reports = [report.inputs() for report in tables.configured(experiment).values()]
    for name in itertools.chain(*reports, *(pages.inputs(experiment, place) for place in pages.cells(experiment))):
        if Path(name).parent != finished / "tables":  # the comparison with the paper reads these
            yield Path(name)
            yield from Path(name).parent.glob(f"*{results.ENDING}")
    yield from finished.glob("*/*/*/adapter/losses.csv")
    yield from finished.glob("corpus/*/test/*.json*")  # with their records
    for rule in TIMED:
        yield from (finished / "benchmarks").glob(f"{rule}/*.tsv")


def write_golden(texts: Mapping[str, str]) -> None:
    shutil.rmtree(GOLDEN, ignore_errors=True)
    for name, text in texts.items():
        files.write_text(GOLDEN / name, text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:] != ["golden"]:
            keep(run_workflow(Path(folder)))
        write_golden(make_all(Run(Path(folder, "copy"))))
