"""Every set scored again, as its job has done it: by sacreBLEU, and by COMET with each text once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from entropy_valley.errors import InputError
from entropy_valley.experiment.verification.folder import Cell, Folder, Report, Unchecked, testset_file
from entropy_valley.experiment.verification.sets import NO_TESTSET, check_ids
from entropy_valley.results import SCORES, TRANSLATIONS, System
from entropy_valley.scoring import from_params, metrics
from entropy_valley.scoring.comet import MainComet
from entropy_valley.scoring.metrics import Scorer, ScoringJob
from entropy_valley.scoring.sets import Outputs, read_outputs, score_cells

NEAR = 1e-5  # between two computations of COMET, whose sums differ in their order
ROWS = 16  # texts that COMET reads together: less time, and digits beyond `NEAR`
NO_COMET = Unchecked("COMET's checkpoint is not at hand (--comet names one)")
OWN = Unchecked("a further metric: a checkpoint of COMET, or the user's own")


def check(folder: Folder, report: Report, comet: Path | None, device: str) -> None:
    """Score the translations of every set again. ``comet`` is a checkpoint of the main metric, where the folder has
    none of its own."""
    # By name and settings: a COMET is loaded once, and knows the texts that it has scored.
    scorers: dict[str, Scorer] = {}
    for home in folder.sets:
        cells = folder.cells(report, home, SCORES)
        outputs = _outputs(folder, report, cells)
        # The cells of a set share a header and its params.
        for first in cells[:1]:
            with report.reading("scores", first.header):
                for name, metric in from_params({**first.params, "metrics": {}}).items():
                    scorer = scorers.setdefault(f"{name} {metric!r}", metric)
                    with report.reading("scores", first.header):
                        job = _job(folder, first, name, scorer, comet, device)
                        again = {} if isinstance(job, Unchecked) else score_cells(name, scorer, job, outputs)
                        for cell in cells:
                            if cell.system in outputs:
                                _compare(report, cell, name, outputs[cell.system].ids, again.get(cell.system, job))


def _outputs(folder: Folder, report: Report, cells: list[Cell]) -> dict[System, Outputs]:
    """The translations of each cell beside its test set, where their sentences are the same."""
    outputs = {}
    for cell in cells:
        with report.reading("rows", cell.file):
            check_ids(folder, report, cell)
            label, stored = cell.system.label, cell.entry.get("sentences")
            report.compare("totals of cells", cell.header, f"sentences of {label}", stored, len(cell.rows))
            for name in cell.params.get("metrics", {}):
                report.compare("further metrics", cell.header, f"{name} of {label}", None, OWN)
            testset = folder.root / testset_file(cell.run[0], cell.system.testset)
            if not testset.is_file():
                report.compare("scores", cell.header, label, None, NO_TESTSET)
                continue
            file = f"{cell.home}/{TRANSLATIONS}"
            outputs[cell.system] = read_outputs(testset, folder.rows(file).get(cell.system, []), f"{file}: {label}")
    return outputs


def _job(
    folder: Folder, cell: Cell, name: str, metric: Scorer, comet: Path | None, device: str
) -> ScoringJob | Unchecked:
    """What a metric needs to score, or why it cannot."""
    checkpoint = None
    if isinstance(metric, MainComet):
        trained_here = folder.root / "comet"
        checkpoint = comet or (trained_here if metric.checkpoint is None and trained_here.exists() else None)
        if checkpoint is None:
            return NO_COMET
    job = ScoringJob(cell.params["target_language"], checkpoint, device, rows=ROWS if device == "cpu" else None)
    try:
        metrics.prepare(name, metric, job)
    # As where a tokenizer of sacreBLEU is not installed.
    except InputError as error:
        return Unchecked(f"{error.place}: {error.problem}")
    return job


def _compare(report: Report, cell: Cell, name: str, ids: Sequence[str], again: Any) -> None:
    """Compare the scores of a cell and of its sentences with those ``again``, or say why there are none. COMET's score
    of a cell is the mean of its rows, with or without a checkpoint."""
    part, within = ("BLEU and chrF", 0.0) if name in ("bleu", "chrf") else ("COMET", NEAR)
    place, stored = f"{name} of {cell.system.label}", cell.entry.get(name)
    if part == "COMET":
        mean = sum(row[name] for row in cell.rows) / len(cell.rows)
        report.compare(part, cell.header, f"{place}, the mean of its rows", stored, mean)
    if isinstance(again, Unchecked):
        report.compare(part, cell.header, place, stored, again)
        return
    report.compare(part, cell.header, place, stored, again.system, within)
    # Other weights may give nearly the same scores.
    if again.digest:
        used = cell.entry.get("digests", {}).get("comet")
        report.compare(part, cell.header, f"digest of the checkpoint of {name}", used, again.digest)
    segments = dict(zip(ids, again.segments or (), strict=False))
    for row in cell.rows if segments else ():
        score = segments.get(row["id"])
        report.compare(part, cell.file, f"line {row['line']}, {name}", row.get(name), score, within)
