"""Time one method on a few sentences of a test set, alone and without the store."""

from __future__ import annotations

import math
import sys

from entropy_valley import files, run
from entropy_valley.canvas.selection import needed_head, read_method
from entropy_valley.canvas.statistics import LengthStatistics
from entropy_valley.corpus.sampling import draw
from entropy_valley.decoding.decode_job import signature
from entropy_valley.decoding.denoising import Denoising
from entropy_valley.engine.arguments import method_arguments
from entropy_valley.engine.job import Job
from entropy_valley.engine.made import made


def main() -> None:
    parser = method_arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=math.inf, help="most minutes of each of the two timings")
    options = parser.parse_args()
    from entropy_valley.canvas.length_head import LengthHead
    from entropy_valley.decoding.latency import measure

    with Job(options) as job, made("latency", job, options):
        spec = job.spec
        drawn = draw(job.rows, spec["sentences"], spec["seed"], "keyed_hash")  # the same for all methods
        job = job.on([job.rows[place] for place in drawn])
        method = read_method(spec["method"], spec["selector"], LengthStatistics.given(options.statistics))
        denoising = Denoising.of(job.spec)
        head = needed_head(spec["method"], method, options.length_head)
        reader = LengthHead.read(head, job.backbone.device) if head else None
        measured = measure(job, method, denoising, spec["repeats"], spec.get("batch"), reader, options.minutes * 60)
        made_by = {**signature(job, denoising), "data_digest": files.file_digest(options.testset)}
        files.write_json(options.out, {**measured, "signature": made_by})
    seconds = {name: measured[name]["seconds_per_sentence"] for name in ("single", "batched")}
    sys.stderr.write(f"latency: {', '.join(f'{name} {value:.4f} s a sentence' for name, value in seconds.items())}\n")


if __name__ == "__main__":
    run.script(main)
