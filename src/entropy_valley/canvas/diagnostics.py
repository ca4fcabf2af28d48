"""The all-mask canvases that the diagnostics of a test set read: around the reference's length, and at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entropy_valley.canvas import valley
from entropy_valley.corpus.sampling import draw

if TYPE_CHECKING:
    from entropy_valley.engine.job import Job


def valley_places(job: Job) -> tuple[list[valley.Place], list[valley.Place]]:
    """Those around the reference's length, and those of the grid of ratios, as the job's spec says; each within the
    context, for the curves count their sentences."""
    spec, tokens = job.spec, job.identity.prompt.tokens
    rows = draw(job.rows, spec["sentences"], spec["seed"], spec.get("subset", "keyed_hash"))
    targets = [len(tokens(row["target"])) for row in job.rows]
    sources = [len(tokens(row["source"])) for row in job.rows]
    around = valley.around_reference(rows, targets, spec["offset"])
    grid = valley.on_grid(rows, sources, spec["ratios"])
    return _within(job, around), _within(job, grid)


def read_places(job: Job) -> list[tuple[int, int]]:
    """(row, slots) of each of the :func:`valley_places`."""
    around, grid = valley_places(job)
    return [(place.row, place.length) for place in around + grid]


def _within(job: Job, places: list[valley.Place]) -> list[valley.Place]:
    return [place for place in places if job.inputs.fits(place.row, place.length)]


def reference_places(job: Job) -> list[tuple[int, int]]:
    """(row, slots) of each sentence's canvas at the reference's length, as Oracle takes it."""
    tokens = job.identity.prompt.tokens
    return [(place, len(tokens(row["target"])) + 1) for place, row in enumerate(job.rows)]
