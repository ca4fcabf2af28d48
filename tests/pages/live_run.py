"""A run of the shipped LLaDA-tiny on a few sentences of the demo, and its live page."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from entropy_valley import files, results
from entropy_valley.data import build
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import Experiment, base_files, params, paths
from entropy_valley.experiment.config.expand import overlay
from entropy_valley.experiment.config.load import load_merged, merge
from entropy_valley.experiment.config.matrix import Cell, sets_of, single_name
from entropy_valley.experiment.demo.grammar import SOURCES
from entropy_valley.experiment.tables import live
from entropy_valley.shipped import GRAMMAR
from entropy_valley.translation import translations
from entropy_valley.translation.job import Execution

SCRIPT = Path(__file__).with_name("translate_by_page.js")


def demo(folder: Path, sentences: int) -> Experiment:
    """The demo's config with so many sentences and few pairs; its results are in a folder of the tests."""
    over = {
        "results": str(folder),
        "matrix": {"seeds": [1]},
        "corpus": {"train": 200, "dev": 20, "test_limit": sentences},
    }
    return load_merged(overlay(merge([*base_files(), "config/demo.yaml"]), over), further=tables.problems)


def write(experiment: Experiment) -> Path:
    """Translate as the rule does, with the adapters of the package, and make the page."""
    files.write_json(Path(paths.backbone_file(experiment, "llada-tiny")), {})
    for direction, cells in live.cells(experiment).items():
        run, corpus = cells[0].run, Path(experiment.results, "corpus", direction)
        train, dev, *_ = build.corpus(json.loads(params.corpus(experiment, direction)), SOURCES)
        files.write_jsonl(corpus / "train.jsonl", train)
        files.write_jsonl(corpus / "dev.jsonl", dev)
        testset = f"{experiment.results}/corpus/{cells[0].direction}/test/{cells[0].testset}.jsonl"
        files.write_jsonl(testset, build.testset(json.loads(params.testset(experiment, direction, "grammar")), SOURCES))
        adapter = Path(paths.adapter_folder(experiment, run))
        shutil.copytree(GRAMMAR.adapter(direction), adapter)
        execution = Execution(GRAMMAR.checkpoint, adapter, corpus)
        for name in ("matrix", single_name(cells[-1])):
            one = sets_of(experiment).named(run, name)
            spec = json.loads(params.translation(experiment, one))
            translations.write(spec, execution, [testset], one.translations(experiment.results))
    page = Path(experiment.results, live.NAME)
    live.write(experiment, str(page), live.inputs(experiment))
    return page


def answers(page: Path, requests: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the page's code says, run by node."""
    lines = "\n".join(json.dumps(request) for request in requests)
    done = subprocess.run(["node", SCRIPT, page], input=lines, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return map(json.loads, done.stdout.rstrip("\n").split("\n"))


def translated(experiment: Experiment, cell: Cell) -> dict[str, dict[str, Any]]:
    """The rows of a cell by source."""
    rows = results.rows(live.translations(experiment, cell, experiment.results), cell)
    by_id = {row["id"]: row for row in rows}
    return {
        one["source"]: by_id[one["id"]]
        for one in files.read_jsonl(f"{experiment.results}/corpus/{cell.direction}/test/{cell.testset}.jsonl")
    }
