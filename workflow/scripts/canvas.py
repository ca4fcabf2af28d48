"""Choose the canvas length of every sentence of a test set; Oracle and Ratio load no model."""

from __future__ import annotations

from entropy_valley import files, run
from entropy_valley.canvas.selection import to_choose
from entropy_valley.canvas.statistics import LengthStatistics
from entropy_valley.decoding.pipeline import Pipeline
from entropy_valley.decoding.prompt_cache import refresh_of
from entropy_valley.engine.arguments import method_arguments
from entropy_valley.engine.job import Job
from entropy_valley.engine.made import made


def main() -> None:
    options = method_arguments(__doc__).parse_args()
    with Job(options) as job, made("canvas", job, options):
        method, sentences = to_choose(job, LengthStatistics.given(options.statistics), options.length_head)
        pipeline = Pipeline(job.runner("probe"), job.inputs, refresh_of(job.spec))
        canvases = pipeline.choose(method, list(sentences.values()))
        rows = [{"id": row["id"], **canvas} for row, canvas in zip(job.rows, canvases, strict=True)]
        files.write_jsonl(options.out, rows)
        job.report("canvas")


if __name__ == "__main__":
    run.script(main)
