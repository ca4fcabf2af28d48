"""Every set scored again: by sacreBLEU, and by COMET with each text once, whichever sets have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.verification.folder import Cell, Folder, Report, Unchecked, testset_file
from entropy_valley.experiment.verification.sets import NO_TESTSET, check_ids
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.scoring import from_params, metrics
from entropy_valley.scoring.comet import MainComet
from entropy_valley.scoring.metrics import Scorer, ScoringJob
from entropy_valley.scoring.sets import Outputs, read_outputs

NEAR = 1e-5  # between two computations of COMET, whose sums differ in their order
NO_COMET = Unchecked("COMET's checkpoint is not at hand (--comet names one)")
OWN = Unchecked("a further metric: a checkpoint of COMET, or the user's own")
DOWNLOADS = ("flores101", "flores200", "spBLEU-1K")  # sacreBLEU fetches these tokenizers


def check(folder: Folder, report: Report, comet: Path | None, device: str) -> None:
    """Score the translations of every set again. ``comet`` is a checkpoint of the main metric, where the folder has
    none of its own."""
    ready: dict[str, Scorer | Unchecked] = {}  # by settings: a COMET knows the texts that it has scored
    for cell in folder.cells(report, SCORES):
        with report.reading("rows", cell.file):
            check_ids(folder, report, cell)
            label, testset = cell.system.label, folder.root / testset_file(cell.run[0], cell.system.testset)
            stored = cell.entry.get("sentences")
            report.compare("totals of cells", cell.header, f"sentences of {label}", stored, len(cell.rows))
            texts: Outputs | Unchecked = NO_TESTSET
            if testset.is_file():
                # read_outputs pairs ids, and names the first that does not fit.
                translated = folder.rows(f"{cell.home}/{TRANSLATIONS}").get(cell.system, [])
                texts = read_outputs(testset, translated, f"{cell.home}/{TRANSLATIONS}: {label}")
            for name, metric in from_params({**cell.params, "metrics": {}}).items():
                # Scores depend on settings and language, not on what was translated.
                key = files.canonical([name, {**cell.params, "made_from": None}])
                with report.reading("scores", cell.header):
                    if key not in ready:
                        ready[key] = _prepared(folder, cell, name, metric, comet, device)
                    _check_metric(report, cell, name, texts, ready[key])
            for name in cell.params.get("metrics", {}):
                report.compare("further metrics", cell.header, f"{name} of {label}", None, OWN)


def _prepared(
    folder: Folder, cell: Cell, name: str, metric: Scorer, comet: Path | None, device: str
) -> Scorer | Unchecked:
    """A metric that is ready, or why there is none."""
    checkpoint = None
    if isinstance(metric, MainComet):
        trained_here = folder.root / "comet"
        checkpoint = comet or (trained_here if metric.checkpoint is None and trained_here.exists() else None)
        if checkpoint is None:
            return NO_COMET
    elif name == "bleu" and cell.params["bleu"].get("tokenize") in DOWNLOADS:
        return Unchecked("BLEU with a tokenizer that sacreBLEU downloads")
    try:
        metrics.prepare(name, metric, ScoringJob(cell.params["target_language"], checkpoint, device))
    # As where a tokenizer of sacreBLEU is not installed.
    except InputError as error:
        return Unchecked(f"{error.place}: {error.problem}")
    return metric


def _check_metric(
    report: Report, cell: Cell, name: str, texts: Outputs | Unchecked, metric: Scorer | Unchecked
) -> None:
    """Compare the scores of a cell and of its sentences. COMET's score of a cell is the mean of its rows, with or
    without a checkpoint."""
    part, within = ("BLEU and chrF", 0.0) if name in ("bleu", "chrf") else ("COMET", NEAR)
    place, stored = f"{name} of {cell.system.label}", cell.entry.get(name)
    if part == "COMET":
        mean = sum(row[name] for row in cell.rows) / len(cell.rows)
        report.compare(part, cell.header, f"{place}, the mean of its rows", stored, mean)
    if isinstance(metric, Unchecked) or isinstance(texts, Unchecked):
        report.compare(part, cell.header, place, stored, metric if isinstance(metric, Unchecked) else texts)
        return
    again = metrics.score(name, metric, texts.sources, texts.hypotheses, texts.references)
    report.compare(part, cell.header, place, stored, again.system, within)
    # Other weights may give nearly the same scores.
    if again.digest:
        used: Any = cell.entry.get("digests", {}).get("comet")
        report.compare(part, cell.header, f"digest of the checkpoint of {name}", used, again.digest)
    segments = dict(zip(texts.ids, again.segments or (), strict=False))
    for row in cell.rows if segments else ():
        score = segments.get(row["id"])
        report.compare(part, cell.file, f"line {row['line']}, {name}", row.get(name), score, within)
