"""The scores of a set of cells: each metric is loaded once, and scores the translations of all cells."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from operator import eq
from pathlib import Path
from typing import Any

from entropy_valley import files, results
from entropy_valley.errors import InputError
from entropy_valley.results import System
from entropy_valley.scoring import from_params, metrics
from entropy_valley.scoring.comet import Comet
from entropy_valley.scoring.metrics import Scorer, Scores, ScoringJob
from entropy_valley.settings import JsonObject
from entropy_valley.store import Store

# --- Putting a system's output beside its test set.


@dataclass(frozen=True)
class Outputs:
    """Sentences of one test set and one system, in the test set's order."""

    ids: list[str]
    sources: list[str]
    hypotheses: list[str]
    references: list[str]


def read_outputs(testset: str | Path, outputs: Sequence[JsonObject], place: object) -> Outputs:
    """Put a system's rows beside the sentences of a test set's file; ``place`` is what errors name of the system.

    Raises InputError that names the first for ids that differ in number or order, and for a hypothesis that is not a
    text.
    """
    rows = files.read_jsonl(testset, ("id", "source", "target"))
    remedy = f"Translate {testset} again: one hypothesis per sentence, in its order."
    for row, output in zip_longest(rows, outputs, fillvalue={"id": "no sentence"}):
        if row["id"] != output["id"]:
            raise InputError(place, f"id {output['id']!r} where {row['id']!r} is due", remedy)
        if not isinstance(text := output.get("hypothesis"), str):
            raise InputError(place, f"hypothesis of {row['id']!r} is {str(text)[:60]!r}, not a text", remedy)
    return Outputs(
        ids=[row["id"] for row in rows],
        sources=[row["source"] for row in rows],
        hypotheses=[output["hypothesis"] for output in outputs],
        references=[row["target"] for row in rows],
    )


# --- Scoring.

MAIN = "comet"  # how a rule names the checkpoint of the main metric, and the name of its digest


def write(
    params: JsonObject,
    execution: JsonObject,
    testsets: Sequence[str],
    translations: str,
    out: str,
    threads: int = 1,
    comet: Sequence[str] = (),
) -> None:
    """Write the scores of a set and their header.

    ``params`` and ``execution`` are those of the rule: metrics with their settings; ``checkpoints`` by metric,
    ``device`` and ``store`` (None: nothing is kept). ``testsets`` are files named by their test set, ``comet`` those
    that say which COMET checkpoints these are.
    """
    paths = {Path(path).stem: path for path in testsets}
    cells = {
        cell: read_outputs(paths[cell.testset], rows, f"{translations}: {cell.label}")
        for cell, rows in results.systems(translations).items()
    }
    scorers = from_params(params)
    main = next(iter(scorers))
    checkpoints = {main if name == MAIN else name: path for name, path in execution["checkpoints"].items()}
    inputs = [*testsets, translations, *comet]
    with results.made("score", params, inputs, [out]) as record, Store(execution["store"]) as store:
        by_cell: dict[System, dict[str, Scores]] = {cell: {} for cell in cells}
        for name in list(scorers):  # what one has loaded is let go before the next
            job = ScoringJob(params["target_language"], checkpoints.get(name), execution["device"], threads, store)
            for cell, scores in score_cells(name, scorers.pop(name), job, cells).items():
                by_cell[cell][name] = scores
        files.write_jsonl(out, results.tidy({cell: _rows(cells[cell], by_cell[cell]) for cell in cells}))
        read = {
            "testset": {name: files.file_digest(path) for name, path in paths.items()},
            "translations": files.file_digest(translations),
        }
        record.facts["cells"] = [_entry(cell, cells[cell], by_cell[cell], main, read) for cell in cells]
        digests = {name: one.digest for by_metric in by_cell.values() for name, one in by_metric.items() if one.digest}
        record.inputs.update({str(checkpoints[name]): digests[name] for name in checkpoints if name in digests})


def score_cells(name: str, metric: Scorer, job: ScoringJob, cells: Mapping[System, Outputs]) -> dict[System, Scores]:
    """The scores of each cell by one metric.

    COMET scores the sentences of all cells at once. Raises InputError that names metric, cell and sentence for a score
    that is not a number; by then all others are in the store.
    """
    metrics.prepare(name, metric, job)
    if isinstance(metric, Comet):
        columns = zip(*((one.sources, one.hypotheses, one.references) for one in cells.values()), strict=True)
        metric.segment_scores(*(list(chain.from_iterable(column)) for column in columns))
    return {
        cell: metrics.score(name, metric, one.sources, one.hypotheses, one.references, cell.label)
        for cell, one in cells.items()
    }


def _rows(outputs: Outputs, scores: Mapping[str, Scores]) -> Iterator[dict[str, Any]]:
    """The scores of each sentence, by the metrics that have any."""
    segments = {name: one.segments for name, one in scores.items() if one.segments is not None}
    for row in zip(outputs.ids, *segments.values(), strict=True):
        yield dict(zip(("id", *segments), row, strict=True))


def _entry(cell: System, outputs: Outputs, scores: Mapping[str, Scores], main: str, read: JsonObject) -> JsonObject:
    """What the header says of a cell: its scores, and what they depend on."""
    digests = {MAIN if name == main else name: one.digest for name, one in scores.items() if one.digest}
    return {
        **cell._asdict(),
        **{name: one.system for name, one in scores.items()},
        "signatures": {name: one.signature for name, one in scores.items()},
        "sentences": len(outputs.ids),
        "copies": sum(map(eq, outputs.hypotheses, outputs.sources)),
        "digests": {**digests, "testset": read["testset"][cell.testset], "translations": read["translations"]},
    }
