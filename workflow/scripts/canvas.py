"""Choose the canvas length of every sentence of a test set; Oracle and Ratio load no model."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from entropy_valley import errors, files
from entropy_valley.canvas.job import Job, arguments
from entropy_valley.canvas.lengths import SHORTEST
from entropy_valley.canvas.predicting import predict
from entropy_valley.canvas.probe import probe
from entropy_valley.canvas.selection import choose_canvases, sentences_of, within
from entropy_valley.canvas.selectors import Selector, make_selector, uses_length_head, uses_statistics
from entropy_valley.canvas.statistics import LengthStatistics


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--statistics", type=Path, help="length statistics of the run, for a selector that uses them")
    parser.add_argument("--length-head", type=Path, help="length head of the run, for a selector that uses it")
    options = parser.parse_args()
    with Job(options) as job:
        selector = _selector(job.spec["method"], job.spec["selector"], options.statistics)
        predicted = _predicted(job, options.length_head)
        # A sentence without room for a canvas is told below, with what its canvas would be.
        rooms = [max(SHORTEST, job.card.context - len(prompt)) for prompt in job.prompts]
        sentences = sentences_of(job.rows, job.card.prompt, selector, predicted, rooms)
        canvases = choose_canvases(selector, sentences, functools.partial(probe, job))
        for place, canvas in enumerate(canvases):
            job.check(place, canvas["length"])
        canvases = [within(canvas, functools.partial(job.fits, place)) for place, canvas in enumerate(canvases)]
        rows = [{"id": row["id"], **canvas} for row, canvas in zip(job.rows, canvases, strict=True)]
        files.write_jsonl(options.out, rows)
        job.report("canvas")


def _selector(method: str, settings: dict[str, Any], statistics: Path | None) -> Selector:
    if not uses_statistics(method, settings):
        return make_selector(method, settings)
    if statistics is None:
        raise errors.InputError(f"selector of {method!r}", "needs length statistics", "Give them as --statistics.")
    return make_selector(method, settings, LengthStatistics.read(statistics))


def _predicted(job: Job, head: Path | None) -> Sequence[dict[int, float]]:
    """What the length head says of each row, where the selector uses it."""
    method = job.spec["method"]
    if not uses_length_head(method, job.spec["selector"]):
        return ()
    if head is None:
        raise errors.InputError(f"selector of {method!r}", "needs a length head", "Give it as --length-head.")
    return predict(job, head)


if __name__ == "__main__":
    errors.run(main)
