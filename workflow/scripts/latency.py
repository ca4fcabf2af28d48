"""Time one method on a few sentences of a test set, alone and without the store."""

from __future__ import annotations

import sys
from pathlib import Path

from entropy_valley import errors, files
from entropy_valley.canvas.job import Job, arguments
from entropy_valley.canvas.selection import read_selector
from entropy_valley.decoding.translation import Denoising, signature


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--statistics", type=Path, help="length statistics of the run, for a selector that uses them")
    parser.add_argument("--length-head", type=Path, help="length head of the run, for a selector that uses it")
    options = parser.parse_args()
    from entropy_valley.canvas.length_head import LengthHead
    from entropy_valley.decoding.latency import draw, measure

    with Job(options) as job:
        spec = job.spec
        job.rows = draw(job.rows, spec["sentences"], spec["seed"])
        selector = read_selector(spec["method"], spec["selector"], options.statistics)
        denoising = Denoising(spec["order"], spec["steps"], spec["schedule"], spec["order_settings"])
        head = LengthHead.read(options.length_head, job.backbone.device) if options.length_head else None
        measured = measure(job, selector, denoising, spec["repeats"], head)
        made_by = {**signature(job, denoising), "data_digest": files.file_digest(options.testset)}
        files.write_json(options.out, {**measured, "signature": made_by})
    seconds = {name: measured[name]["seconds_per_sentence"] for name in ("single", "batched")}
    sys.stderr.write(f"latency: {', '.join(f'{name} {value:.4f} s a sentence' for name, value in seconds.items())}\n")


if __name__ == "__main__":
    errors.run(main)
