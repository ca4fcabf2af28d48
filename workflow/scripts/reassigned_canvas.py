"""Deal the canvas ratios of another method to other sentences; no model is loaded."""

from __future__ import annotations

from pathlib import Path

from entropy_valley import files, run
from entropy_valley.canvas.reassignment import reassign
from entropy_valley.decoding.decode_job import read_canvases
from entropy_valley.engine.job import Job, arguments


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--of", type=Path, required=True, help="the canvas file of the other method, in the same run")
    options = parser.parse_args()
    with Job(options) as job:
        settings = job.spec["selector"]
        sources = [len(job.identity.prompt.tokens(row["source"])) for row in job.rows]
        given = [canvas["length"] for canvas in read_canvases(options.of, job.rows)]
        lengths = reassign(given, sources, settings["seed"], settings["within"])
        for place, length in enumerate(lengths):
            job.inputs.check(place, length)
        # The ratios are those that other sentences have probed: this method's own probes are none.
        rows = [
            {"id": row["id"], "length": length, "candidates": [length], "scores": [], "calls": 0, "slots": 0}
            for row, length in zip(job.rows, lengths, strict=True)
        ]
        files.write_jsonl(options.out, rows)
        job.report("reassigned canvas")


if __name__ == "__main__":
    run.script(main)
