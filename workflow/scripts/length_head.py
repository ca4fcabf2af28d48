"""Train a run's length head on training pairs; they and the dev pairs take the test set's place."""

from __future__ import annotations

from pathlib import Path

from entropy_valley import files, run
from entropy_valley.canvas.training_pairs import length_head
from entropy_valley.engine.arguments import arguments
from entropy_valley.engine.job import Job
from entropy_valley.engine.made import made


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--dev", type=Path, required=True, help="pairs on which the head's error is reported")
    parser.add_argument("--info", type=Path, required=True, help="where that report goes, as JSON")
    options = parser.parse_args()
    with Job(options) as job, made("length_head", job, options):
        trained = length_head(job, options.dev)
        digests = {"data_digest": files.file_digest(options.testset), "dev_digest": files.file_digest(options.dev)}
        with files.atomic(options.out) as temporary:
            temporary.write_bytes(trained.weights)
        files.write_json(options.info, {**trained.info, "signature": {**job.signature("length head"), **digests}})
        job.report("length head")


if __name__ == "__main__":
    run.script(main)
