"""Measure on training pairs what calibrated length methods are fitted to; the pairs take the test set's place."""

from __future__ import annotations

from entropy_valley import files, run
from entropy_valley.canvas.training_pairs import length_statistics
from entropy_valley.engine.arguments import arguments
from entropy_valley.engine.job import Job
from entropy_valley.engine.made import made


def main() -> None:
    options = arguments(__doc__).parse_args()
    with Job(options) as job, made("length_statistics", job, options):
        signature = {**job.signature("length statistics"), "data_digest": files.file_digest(options.testset)}
        files.write_json(options.out, {**length_statistics(job), "signature": signature})
        job.report("length statistics")


if __name__ == "__main__":
    run.script(main)
