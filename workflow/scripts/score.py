"""Score one system's hypotheses by every metric of the config: per sentence and of the system, with signatures."""

from __future__ import annotations

import argparse

from entropy_valley import files, provenance, run
from entropy_valley.scoring import metrics
from entropy_valley.scoring.alignment import Outputs, read_outputs
from entropy_valley.scoring.job import Job, add_arguments, checkpoints, open_store
from entropy_valley.scoring.metrics import Scores
from entropy_valley.store import Store

MAIN = "comet"  # the folder of the main metric's checkpoint, and the name of its digest


def main() -> None:
    options = _options()
    written = [options.segments, options.system]
    with provenance.made("score", options.spec, [options.testset, options.hypotheses], written) as record:
        record.inputs.update(_score(options))


def _score(options: argparse.Namespace) -> dict[str, str]:
    """Write the scores; the digest of each metric's checkpoint, by its path."""
    outputs = read_outputs(options.testset, options.hypotheses)
    with open_store(options) as store:
        scores = _scores(options, outputs, store)
    segments = {name: one.segments for name, one in scores.items() if one.segments is not None}
    rows = zip(outputs.ids, *segments.values(), strict=True)
    files.write_jsonl(options.segments, (dict(zip(("id", *segments), row, strict=True)) for row in rows))
    main_metric = next(iter(scores))
    digests = {MAIN if name == main_metric else name: one.digest for name, one in scores.items() if one.digest}
    digests |= {"testset": files.file_digest(options.testset), "hypotheses": files.file_digest(options.hypotheses)}
    system = {
        **{name: one.system for name, one in scores.items()},
        "signatures": {name: one.signature for name, one in scores.items()},
        "sentences": len(outputs.ids),
        "digests": digests,
    }
    files.write_json(options.system, system)
    paths = checkpoints(options, MAIN)
    return {paths[name]: digest for name, digest in digests.items() if name in paths}


def _scores(options: argparse.Namespace, outputs: Outputs, store: Store) -> dict[str, Scores]:
    """The scores of each metric in turn; what one has loaded is let go before the next."""
    scorers, scores = metrics.from_params(options.spec), {}
    paths, language = checkpoints(options, next(iter(scorers))), options.spec["target_language"]
    for name in list(scorers):
        job = Job(language, paths.get(name), options.device, options.threads, store, options.from_store)
        sentences = (outputs.sources, outputs.hypotheses, outputs.references)
        scores[name] = metrics.score(name, scorers.pop(name), job, *sentences)
    return scores


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--hypotheses", required=True)
    parser.add_argument("--segments", required=True, help="output: one row per sentence")
    parser.add_argument("--system", required=True, help="output: the system's scores and their signatures")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--no-store", action="store_true", help="neither read nor write finished work")
    where.add_argument(
        "--from-store", action="store_true", help="load no COMET model: a score that the store lacks is an error"
    )
    return parser.parse_args()


if __name__ == "__main__":
    run.script(main)
