"""Choose the canvas length of every sentence of a test set; Oracle and Ratio load no model."""

from __future__ import annotations

import functools

from entropy_valley import errors, files
from entropy_valley.canvas.predicting import needed_head, predict
from entropy_valley.canvas.selection import choose_canvases, read_method, sentences_of
from entropy_valley.engine.job import Job, method_arguments
from entropy_valley.engine.probe import probe


def main() -> None:
    options = method_arguments(__doc__).parse_args()
    with Job(options) as job:
        method = read_method(job.spec["method"], job.spec["selector"], options.statistics)
        head = needed_head(job.spec["method"], method, options.length_head)
        predicted = predict(job, head) if head else ()
        sentences = sentences_of(job.rows, job.identity.prompt, method, predicted, job.rooms)
        canvases = choose_canvases(method, sentences, functools.partial(probe, job))
        for place, canvas in enumerate(canvases):
            job.check(place, canvas["length"])
        rows = [{"id": row["id"], **canvas} for row, canvas in zip(job.rows, canvases, strict=True)]
        files.write_jsonl(options.out, rows)
        job.report("canvas")


if __name__ == "__main__":
    errors.run(main)
