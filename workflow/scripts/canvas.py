"""Choose the canvas length of every sentence of a test set; Oracle and Ratio load no model."""

from __future__ import annotations

from entropy_valley import files, run
from entropy_valley.canvas.selection import needed_head, predict, read_method, sentences_of
from entropy_valley.decoding.pipeline import Pipeline
from entropy_valley.engine.job import Job, method_arguments


def main() -> None:
    options = method_arguments(__doc__).parse_args()
    with Job(options) as job:
        method = read_method(job.spec["method"], job.spec["selector"], options.statistics)
        head = needed_head(job.spec["method"], method, options.length_head)
        predicted = predict(job, head) if head else ()
        sentences = sentences_of(job.rows, job.identity.prompt, method, predicted, job.inputs.rooms)
        canvases = Pipeline(job.runner("probe"), job.inputs).choose(method, sentences)
        rows = [{"id": row["id"], **canvas} for row, canvas in zip(job.rows, canvases, strict=True)]
        files.write_jsonl(options.out, rows)
        job.report("canvas")


if __name__ == "__main__":
    run.script(main)
