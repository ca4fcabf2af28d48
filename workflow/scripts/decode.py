"""Translate a test set on its chosen canvases; what the store has is not decoded again."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, run
from entropy_valley.decoding.decode_job import read_canvases, signature, summary, translate
from entropy_valley.decoding.denoising import Denoising
from entropy_valley.engine.arguments import arguments
from entropy_valley.engine.job import Job
from entropy_valley.engine.made import made


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--canvas", type=Path, required=True)
    parser.add_argument("--info", type=Path, required=True, help="where signature and totals go, as JSON")
    options = parser.parse_args()
    with Job(options) as job, made("decode", job, options):
        denoising = Denoising.of(job.spec)
        canvases = read_canvases(options.canvas, job.rows)
        rows = translate(job, canvases, denoising)
        digests = {name: files.file_digest(path) for name, path in _data(options).items()}
        files.write_jsonl(options.out, rows)
        totals = summary(job, canvases, rows, denoising)
        files.write_json(options.info, {"signature": {**signature(job, denoising), **digests}, **totals})
        job.report("decode")


def _data(options: argparse.Namespace) -> dict[str, Path]:
    return {"data_digest": options.testset, "canvas_digest": options.canvas}


if __name__ == "__main__":
    run.script(main)
