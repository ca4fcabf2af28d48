"""Every set scored again: by sacreBLEU, and by COMET with each text once, whichever sets have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS, System
from entropy_valley.scoring import from_params, metrics
from entropy_valley.scoring.comet import MainComet
from entropy_valley.scoring.metrics import Scorer, ScoringJob
from entropy_valley.verification.folder import SCORES_HEADER, Folder, Report, Row, Set, Unchecked, cells_of
from entropy_valley.verification.sets import check_ids

NEAR = 1e-5  # between two computations of COMET, whose sums differ in their order
NO_COMET = Unchecked("COMET's checkpoint is not at hand (--comet names one)")
NOT_WHOLE = Unchecked("the score of a cell whose sentences are not those of the test set")
OWN = Unchecked("a metric of the user's own")
DOWNLOADS = ("flores101", "flores200", "spBLEU-1K")  # sacreBLEU fetches these tokenizers

Again = tuple[float | Unchecked, Sequence[float] | Unchecked]
"""The score of a system, and those of its sentences."""


@dataclass
class Scored:
    """A scored cell. ``rows`` are those with a translation and a reference, ``texts`` their sources, hypotheses and
    references; ``whole``: these are the test set. ``entry`` is what the header says of the cell."""

    home: str
    system: System
    params: Mapping[str, Any]
    rows: Sequence[Row]
    texts: Sequence[Sequence[str]]
    whole: bool
    entry: Mapping[str, Any]


def check(folder: Folder, report: Report, comet: Path | None, device: str) -> None:
    """Score the translations of every set again. ``comet`` is a checkpoint of the main metric, where the folder has
    none of its own."""
    scored: list[Scored] = []
    for one in folder.sets:
        file = f"{one.home}/{SCORES}"
        if f"{one.home}/{SCORES_HEADER}" in folder.records:
            with report.reading("rows", folder.root / file, file):
                scored += _scored(folder, report, one)
    alike: dict[str, list[Scored]] = {}
    for cell in scored:
        if "comet" not in cell.params:
            continue
        alike.setdefault(files.canonical(cell.params["comet"]), []).append(cell)
    for cells in alike.values():
        with report.reading("COMET", folder.root, f"{cells[0].home}/{SCORES_HEADER}"):
            _check_comet(folder, report, cells, comet, device)
    for cell in scored:
        with report.reading("BLEU and chrF", folder.root, f"{cell.home}/{SCORES_HEADER}"):
            for name in ("bleu", "chrf"):
                _compare(report, "BLEU and chrF", cell, name, _by_sacrebleu(cell, name))
            for name, settings in cell.params.get("metrics", {}).items():
                _compare(report, "further metrics", cell, name, NO_COMET if settings["metric"] == "comet" else OWN)


def _scored(folder: Folder, report: Report, one: Set) -> list[Scored]:
    """The cells of a set, after their rows and the number of sentences in the header are checked."""
    header, file = folder.records[f"{one.home}/{SCORES_HEADER}"], f"{one.home}/{SCORES}"
    cells, entries = folder.rows(file), cells_of(header)
    translated = folder.rows(f"{one.home}/{TRANSLATIONS}")
    report.compare("rows", file, "cells", sorted(cells), sorted(translated))
    scored = []
    for system, rows in cells.items():
        check_ids(folder, report, one, system, rows, file)
        entry = entries.get(system, {})
        place = f"sentences of {system.label}"
        report.compare("totals of cells", f"{one.home}/{SCORES_HEADER}", place, entry.get("sentences"), len(rows))
        references = folder.testset(one.direction, system.testset)
        outputs = {row.values["id"]: row.values["hypothesis"] for row in translated.get(system, [])}
        kept = [row for row in rows if row.values["id"] in references and row.values["id"] in outputs]
        texts: list[list[str]] = [[], [], []]
        for row in kept:
            pair = references[row.values["id"]]
            for column, text in zip(texts, (pair["source"], outputs[row.values["id"]], pair["target"]), strict=True):
                column.append(text)
        whole = bool(kept) and [row.values["id"] for row in kept] == [*references]
        scored.append(Scored(one.home, system, header["params"], kept, texts, whole, entry))
    return scored


def _check_comet(folder: Folder, report: Report, cells: Sequence[Scored], comet: Path | None, device: str) -> None:
    """Score cells whose main metric has the same settings in one go: so a segment of several is scored once."""
    metric = MainComet(**cells[0].params["comet"])
    name = metric.key
    trained_here = folder.root / "comet"
    checkpoint = comet or (trained_here if metric.checkpoint is None and trained_here.exists() else None)
    if checkpoint is None:
        for cell in cells:
            _compare(report, "COMET", cell, name, NO_COMET)
        return
    metrics.prepare(name, metric, ScoringJob("", checkpoint.resolve(), device))
    if metric.batch_size == 1:  # else a score depends on its neighbours in the cell
        metric.segment_scores(*([text for cell in cells for text in cell.texts[side]] for side in range(3)))
    for cell in cells:
        used, header = cell.entry.get("digests", {}).get("comet"), f"{cell.home}/{SCORES_HEADER}"
        report.compare("COMET", header, f"digest of the checkpoint of {name}", used, metric.digest)
        _compare(report, "COMET", cell, name, _again(name, metric, cell))


def _by_sacrebleu(cell: Scored, name: str) -> Again | Unchecked:
    if name == "bleu" and cell.params["bleu"].get("tokenize") in DOWNLOADS:
        return Unchecked("BLEU with a tokenizer that sacreBLEU downloads")
    metric = from_params({**cell.params, "metrics": {}})[name]
    try:
        metrics.prepare(name, metric, ScoringJob(cell.params["target_language"]))
    except InputError as error:
        return Unchecked(f"{error.place}: {error.problem}")
    return _again(name, metric, cell)


def _again(name: str, metric: Scorer, cell: Scored) -> Again:
    sources, hypotheses, references = cell.texts
    again = metrics.score(name, metric, sources, hypotheses, references)
    return again.system, again.segments or ()


def _compare(report: Report, part: str, cell: Scored, name: str, again: Again | Unchecked) -> None:
    """Compare the scores of a cell and of its sentences. COMET's score of a cell is the mean of its rows, too."""
    system, segments = (again, again) if isinstance(again, Unchecked) else again
    file, header, place = f"{cell.home}/{SCORES}", f"{cell.home}/{SCORES_HEADER}", f"{name} of {cell.system.label}"
    within = NEAR if part == "COMET" else 0.0
    if name != "bleu":
        for number, row in enumerate(cell.rows):
            value = segments if isinstance(segments, Unchecked) else segments[number]
            report.compare(part, file, f"line {row.line}, {name}", row.values.get(name), value, within)
    stored = cell.entry.get(name)
    report.compare(part, header, place, stored, system if cell.whole else NOT_WHOLE, within)
    if part == "COMET" and cell.whole and all(isinstance(row.values.get(name), float) for row in cell.rows):
        mean = sum(row.values[name] for row in cell.rows) / len(cell.rows)
        report.compare(part, header, f"{place}, the mean of its rows", stored, mean)
