"""Write how much each test sentence's all-mask canvas depends on the source, and how much of that sits in few slots."""

from __future__ import annotations

import statistics

from entropy_valley import files, run
from entropy_valley.analysis.sig_concentration import concentration
from entropy_valley.canvas.diagnostics import reference_places
from entropy_valley.engine.arguments import arguments
from entropy_valley.engine.job import Job
from entropy_valley.engine.made import made
from entropy_valley.engine.probe import slot_sigs


def main() -> None:
    options = arguments(__doc__).parse_args()
    with Job(options) as job, made("sig_concentration", job, options):
        found = slot_sigs(job, reference_places(job), job.spec["sig"])
        rows = [
            {
                "id": row["id"],
                "concentration": round(concentration(sigs, job.spec), 6),
                "mean_sig": round(statistics.fmean(sigs), 6),
            }
            for row, sigs in zip(job.rows, found, strict=True)
        ]
        files.write_jsonl(options.out, rows)
        job.report("sig concentration")


if __name__ == "__main__":
    run.script(main)
