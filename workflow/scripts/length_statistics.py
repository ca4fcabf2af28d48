"""Measure on training pairs what calibrated length methods are fitted to; the pairs take the test set's place."""

from __future__ import annotations

from collections.abc import Sequence

from entropy_valley import files, run
from entropy_valley.canvas import fitting
from entropy_valley.canvas.length_methods.cal import mean_confidence
from entropy_valley.canvas.length_methods.ev import mean_entropy
from entropy_valley.engine.job import Job, arguments
from entropy_valley.engine.probe import probe


def main() -> None:
    options = arguments(__doc__).parse_args()
    with Job(options) as job:
        tokens = job.identity.prompt.tokens
        pairs = [(len(tokens(row["source"])), len(tokens(row["target"]))) for row in job.rows]
        lengths = [target + 1 for _, target in pairs]
        # A corpus lies in the order of its keyed hash: its beginning is a random sample, and only that is probed.
        job.rows = job.rows[: max(job.spec["pairs"], job.spec["bias_pairs"])]
        statistics = {
            "ratio": fitting.ratio_moments(pairs),
            "line": fitting.length_line(pairs),
            "expected_entropy": fitting.expected_entropies(_entropies(job, lengths)),
            "confidence_bias": fitting.confidence_bias(_confidences(job, lengths)),
            "signature": {**job.signature("length statistics"), "data_digest": files.file_digest(options.testset)},
        }
        files.write_json(options.out, statistics)
        job.report("length statistics")


def _entropies(job: Job, lengths: Sequence[int]) -> list[tuple[int, float]]:
    """(true length, mean entropy) of one all-mask canvas a pair; an empty target has no slot to take a mean of."""
    rows = range(min(job.spec["pairs"], len(job.rows)))
    asked = [(place, lengths[place]) for place in rows if lengths[place] > 1 and job.inputs.fits(place, lengths[place])]
    readings = probe(job, asked)
    return [(length, mean_entropy(reading)) for (_, length), reading in zip(asked, readings, strict=True)]


def _confidences(job: Job, lengths: Sequence[int]) -> list[tuple[int, float]]:
    """(length, mean max-probability) of canvases whose length is not near the pair's own."""
    asked = [
        (place, length)
        for place in range(min(job.spec["bias_pairs"], len(job.rows)))
        for length in fitting.LENGTHS
        if abs(length - lengths[place]) > fitting.NEAR and job.inputs.fits(place, length)
    ]
    readings = probe(job, asked)
    return [(length, mean_confidence(reading)) for (_, length), reading in zip(asked, readings, strict=True)]


if __name__ == "__main__":
    run.script(main)
