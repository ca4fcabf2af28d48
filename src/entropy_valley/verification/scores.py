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
from entropy_valley.scoring.comet import Comet
from entropy_valley.scoring.metrics import ScoringJob
from entropy_valley.verification.folder import SCORES_HEADER, Folder, Report, Row, Set, Unchecked, cells_of
from entropy_valley.verification.sets import check_ids

NEAR = 1e-5  # between two computations of COMET, whose sums differ in their order
NO_COMET = Unchecked("COMET's checkpoint is not at hand (--comet names one)")
NOT_WHOLE = Unchecked("the score of a cell whose sentences are not those of the test set")
OWN = Unchecked("a metric of the user's own")
DOWNLOADS = ("flores101", "flores200", "spBLEU-1K")  # sacreBLEU fetches these tokenizers


@dataclass
class Scored:
    """A scored cell whose sentences have a translation and a reference: ``texts`` are sources, hypotheses and
    references in the order of ``rows``; ``entry`` is what the header says of the cell."""

    home: str
    system: System
    params: Mapping[str, Any]
    rows: Sequence[Row]
    texts: tuple[tuple[str, ...], ...]
    entry: Mapping[str, Any]
    whole: bool


def check(folder: Folder, report: Report, comet: Path | None, device: str) -> None:
    """Score the translations of every set again. ``comet`` is a checkpoint of the main metric, where the folder has
    none of its own."""
    scored: list[Scored] = []
    for one in folder.sets:
        file = f"{one.home}/{SCORES}"
        if f"{one.home}/{SCORES_HEADER}" in folder.records:
            with report.reading("rows", folder.root / file, file):
                scored += _scored(folder, report, one)
    by_params: dict[str, list[Scored]] = {}
    for cell in scored:
        by_params.setdefault(files.canonical(_of_all_directions(cell.params)), []).append(cell)
    for cells in by_params.values():
        with report.reading("rows", folder.root / cells[0].home, f"{cells[0].home}/{SCORES_HEADER}"):
            _check_comet(folder, report, cells, comet, device)
    for cell in scored:
        with report.reading("rows", folder.root / cell.home, f"{cell.home}/{SCORES_HEADER}"):
            for name in ("bleu", "chrf"):
                _compare(report, cell, name, _by_sacrebleu(cell, name), "BLEU and chrF")
            for name, settings in cell.params.get("metrics", {}).items():
                further = NO_COMET if settings["metric"] == "comet" else OWN
                _compare(report, cell, name, further, "further metrics")


def _of_all_directions(params: Mapping[str, Any]) -> dict[str, Any]:
    """What COMET's scores depend on: neither the target language nor what the texts were made from."""
    return {"comet": params["comet"]}


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
        ids = [row.values["id"] for row in kept]
        texts = (
            tuple(references[name]["source"] for name in ids),
            tuple(outputs[name] for name in ids),
            tuple(references[name]["target"] for name in ids),
        )
        whole = ids == [*references]
        scored.append(Scored(one.home, system, header["params"], kept, texts, entry, whole))
    return scored


Again = tuple[float | Unchecked, Sequence[float] | Unchecked]
"""The score of a system, and those of its sentences."""


def _check_comet(folder: Folder, report: Report, cells: Sequence[Scored], comet: Path | None, device: str) -> None:
    """Score cells whose main metric has the same settings, in one go: equal segments are scored once."""
    name, metric = next(iter(from_params({"comet": cells[0].params["comet"]}).items()))
    assert isinstance(metric, Comet)
    own = folder.root / "comet"
    checkpoint = comet or (own if not metric.checkpoint and own.exists() else None)
    if checkpoint is None:
        for cell in cells:
            _compare(report, cell, name, NO_COMET, "COMET")
        return
    metrics.prepare(name, metric, ScoringJob("", checkpoint.resolve(), device))
    if metric.batch_size == 1:
        columns = [[text for cell in cells for text in cell.texts[side]] for side in range(3)]
        metric.segment_scores(*columns)
    for cell in cells:
        place = f"digest of {name}'s checkpoint"
        stored = cell.entry.get("digests", {}).get("comet")
        report.compare("COMET", f"{cell.home}/{SCORES_HEADER}", place, stored, metric.digest)
        again = metrics.score(name, metric, *cell.texts)
        assert again.segments is not None
        _compare(report, cell, name, (again.system, again.segments), "COMET")


def _by_sacrebleu(cell: Scored, name: str) -> Again | Unchecked:
    metric = from_params({**cell.params, "metrics": {}})[name]
    if name == "bleu" and cell.params.get("bleu", {}).get("tokenize") in DOWNLOADS:
        return Unchecked("BLEU with a tokenizer that sacreBLEU downloads")
    try:
        metrics.prepare(name, metric, ScoringJob(cell.params["target_language"]))
    except InputError as error:
        return Unchecked(f"{error.place}: {error.problem}")
    again = metrics.score(name, metric, *cell.texts)
    return again.system, again.segments or OWN


def _compare(report: Report, cell: Scored, name: str, again: Again | Unchecked, part: str) -> None:
    """Compare the scores of a cell and its sentences; the sentences' mean is COMET's score of the cell, too."""
    system, segments = (again, again) if isinstance(again, Unchecked) else again
    file, header = f"{cell.home}/{SCORES}", f"{cell.home}/{SCORES_HEADER}"
    within = NEAR if part == "COMET" else 0.0
    if name != "bleu":
        for number, row in enumerate(cell.rows):
            value = segments if isinstance(segments, Unchecked) else segments[number]
            report.compare(part, file, f"line {row.line}, {name}", row.values.get(name), value, within)
    if not cell.whole:
        system = NOT_WHOLE
    place = f"{name} of {cell.system.label}"
    report.compare(part, header, place, cell.entry.get(name), system, within)
    if part == "COMET" and all(isinstance(row.values.get(name), int | float) for row in cell.rows) and cell.rows:
        mean = sum(row.values[name] for row in cell.rows) / len(cell.rows)
        report.compare(part, header, f"{place}, the mean of its rows", cell.entry.get(name), mean)
