"""Choose the canvas length of every sentence of a test set; Oracle and Ratio load no model."""

from __future__ import annotations

import functools
from pathlib import Path

from entropy_valley import errors, files
from entropy_valley.canvas.job import Job, arguments
from entropy_valley.canvas.probe import probe
from entropy_valley.canvas.selection import choose_canvases, read_selector, sentences_of


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--statistics", type=Path, help="length statistics of the run, for a selector that uses them")
    options = parser.parse_args()
    with Job(options) as job:
        selector = read_selector(job.spec["method"], job.spec["selector"], options.statistics)
        sentences = sentences_of(job.rows, job.card.prompt, selector)
        canvases = choose_canvases(selector, sentences, functools.partial(probe, job))
        for place, canvas in enumerate(canvases):
            job.check(place, canvas["length"])
        rows = [{"id": row["id"], **canvas} for row, canvas in zip(job.rows, canvases, strict=True)]
        files.write_jsonl(options.out, rows)
        job.report("canvas")


if __name__ == "__main__":
    errors.run(main)
