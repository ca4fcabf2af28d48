"""Finished cells in the folders and formats of mt-metrics-eval, the toolkit that compares metrics.

Its README (google-research/mt-metrics-eval on GitHub) has the format: a folder for each test set, and in it files for
each pair of languages.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell, sets_of
from entropy_valley.experiment.config.schema import metrics_of
from entropy_valley.experiment.frames import CELL, System, read_sets
from entropy_valley.experiment.tables.reader import Results, require_of_config
from entropy_valley.results import entries, header_path, system_of
from entropy_valley.scoring.metrics import Metric

REFERENCE = "ref"  # the name of the reference; the format allows no dash and no dot in it


def export(experiment: Experiment, out: Path) -> list[str]:
    """Write all cells that are scored into the new folder ``out``; return a line for each test set and direction.

    A metric is written where it has scored every system of the pair. Raises InputError for an existing ``out``, for a
    config without a scored cell, and for results that do not belong together or are those of another config.
    """
    if out.exists():
        raise InputError(out, "exists already", "Name a new folder.")
    root = experiment.results
    folders: dict[str, Iterable[System] | None] = {}
    exported: list[Cell] = []
    for one in sets_of(experiment).all:
        if header_path(one.scores(root)).is_file():
            # A set may have been scored before the config got more cells.
            scored = entries(header_path(one.scores(root)))
            cells_of_set = [cell for cell in one.cells if system_of(cell) in scored]
            folders[one.folder(root)] = [*map(system_of, cells_of_set)]
            exported += cells_of_set
    if not folders:
        raise InputError(root, "no cell of this config is scored", "Run the workflow first, or name another config.")
    # The toolkit sees no headers: what is older than the config must not get that far.
    results = Results(experiment, root)
    require_of_config(results, exported)
    sentences, cells = read_sets(root, folders, ("hypothesis", "source", "target"), results.file)
    cells["system"] = [system_name(*key) for key in cells[CELL].itertuples(index=False)]
    lines = []
    with files.atomic_folder(out) as new:
        for (testset, direction), of_pair in cells.groupby(["testset", "direction"], sort=False):
            rows = sentences.merge(of_pair[[*CELL, "system"]])
            lines.append(_pair(new / testset, direction, rows, of_pair, metrics_of(experiment.scoring)))
    return lines


def system_name(backbone: str, _direction: str, _testset: str, *coordinates: Any) -> str:
    """The name of a cell as a system: of it files are named, and it must be one word."""
    order, steps, pool, seed, method = coordinates
    run = f"seed{seed}{'-' * bool(pool)}{pool}"
    return "-".join(filter(None, (backbone, run, method, order and f"{order}-T{steps}")))


def _pair(folder: Path, direction: str, sentences: pd.DataFrame, cells: pd.DataFrame, metrics: Iterable[Metric]) -> str:
    """Write what there is of a test set in one direction, its systems one after another."""
    first, *_ = (rows for _, rows in sentences.groupby("system", sort=False))
    _lines(folder / "sources" / f"{direction}.txt", first["source"])
    _lines(folder / "references" / f"{direction}.{REFERENCE}.txt", first["target"])
    # The format wants documents: here each test set is one.
    _lines(folder / "documents" / f"{direction}.docs", [f"{folder.name} {folder.name}"] * len(first))
    for name, rows in sentences.groupby("system", sort=False):
        _lines(folder / "system-outputs" / direction / f"{name}.txt", rows["hypothesis"])
    written = []
    for metric in metrics:
        name = f"{metric.name}-{'src' if metric.reference_free else REFERENCE}"
        # The toolkit compares systems, so a metric needs all of them.
        for frame, ending in ((cells, "sys"), (sentences, "seg")):
            if metric.name in frame and frame[metric.name].notna().all():
                scores = frame["system"] + "\t" + frame[metric.name].astype(str)
                _lines(folder / "metric-scores" / direction / f"{name}.{ending}.score", scores)
                written.append(metric.name)
    counts = f"{len(cells)} systems, {len(first)} sentences"
    return f"{folder.name} {direction}: {counts}, {', '.join(dict.fromkeys(written))}"


def _lines(path: Path, texts: Iterable[str]) -> None:
    """One text a line; a line break within a text becomes a space."""
    files.write_text(path, "".join(f"{' '.join(text.splitlines())}\n" for text in texts))
