"""Deal the canvas ratios of another method to other sentences; no model is loaded."""

from __future__ import annotations

from pathlib import Path

from entropy_valley import files, run
from entropy_valley.canvas.reassignment import reassigned_rows
from entropy_valley.decoding.decode_job import read_canvases
from entropy_valley.engine.arguments import arguments
from entropy_valley.engine.job import Job
from entropy_valley.engine.made import made


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--of", type=Path, required=True, help="the canvas file of the other method, in the same run")
    options = parser.parse_args()
    with Job(options) as job, made("reassigned_canvas", job, options):
        given = [canvas["length"] for canvas in read_canvases(options.of, job.rows)]
        dealt = reassigned_rows(job, given)
        rows = [{"id": row["id"], **canvas} for row, canvas in zip(job.rows, dealt, strict=True)]
        files.write_jsonl(options.out, rows)
        job.report("reassigned canvas")


if __name__ == "__main__":
    run.script(main)
