"""Read all-mask canvases of test sentences around the reference's length and on a dense grid.

A diagnostic that sees the reference. What a canvas job has probed comes from the store, and the other way round.
"""

from __future__ import annotations

from entropy_valley import files, run
from entropy_valley.canvas import valley
from entropy_valley.canvas.diagnostics import valley_places
from entropy_valley.canvas.length_methods.ev import mean_entropy
from entropy_valley.engine.arguments import arguments
from entropy_valley.engine.job import Job
from entropy_valley.engine.made import made
from entropy_valley.engine.probe import probe


def main() -> None:
    options = arguments(__doc__).parse_args()
    with Job(options) as job, made("valley", job, options):
        tokens = job.identity.prompt.tokens
        around, grid = valley_places(job)
        entropies = [mean_entropy(reading) for reading in probe(job, [(it.row, it.length) for it in around + grid])]
        read = {
            "offsets": valley.curve(around, entropies[: len(around)]),
            "offsets_complete": valley.complete(around, entropies[: len(around)]),
            "ratios": valley.curve(grid, entropies[len(around) :]),
            "source_tokens": {row["id"]: len(tokens(row["source"])) for row in job.rows},
            "signature": {**job.signature("all-mask"), "data_digest": files.file_digest(options.testset)},
        }
        files.write_json(options.out, read)
        job.report("valley")


if __name__ == "__main__":
    run.script(main)
