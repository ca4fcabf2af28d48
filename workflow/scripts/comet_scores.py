"""Score the translations of many systems of one test set by COMET, into the store: each model is loaded once."""

from __future__ import annotations

import argparse

from entropy_valley import files, run
from entropy_valley.scoring import metrics
from entropy_valley.scoring.alignment import read_outputs
from entropy_valley.scoring.comet import Comet
from entropy_valley.scoring.job import Job, add_arguments, checkpoints, open_store
from entropy_valley.scoring.systems import fill_store


def main() -> None:
    options = _options()
    systems = {path: read_outputs(options.testset, path) for path in options.hypotheses}
    scorers = metrics.from_params(options.spec)
    paths = checkpoints(options, next(iter(scorers)))
    with open_store(options) as store:
        for name in [name for name, metric in scorers.items() if isinstance(metric, Comet)]:
            job = Job(options.spec["target_language"], paths.get(name), options.device, options.threads, store)
            fill_store(name, scorers.pop(name), job, systems)
    sentences = sum(len(one.ids) for one in systems.values())
    files.write_json(options.out, {"systems": len(systems), "sentences": sentences})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument(
        "--hypotheses", required=True, type=run.params, help="a JSON list, or a file with one: the file of each system"
    )
    parser.add_argument("--out", required=True, help="output: written when all scores are in the store")
    return parser.parse_args()


if __name__ == "__main__":
    run.script(main)
