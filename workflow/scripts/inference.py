"""Compute what many jobs of a run need of its model, loaded once: into the store, from which they take it."""

from __future__ import annotations

from pathlib import Path

from entropy_valley import errors, files, run
from entropy_valley.decoding.asked import Shard, read_asked
from entropy_valley.decoding.inference import Inference
from entropy_valley.engine.arguments import add_method_files, model_arguments
from entropy_valley.engine.job import Job
from entropy_valley.store import Store


def main() -> None:
    parser = add_method_files(model_arguments(__doc__))
    parser.add_argument("--requests", type=Path, required=True, help="what is asked for, as JSON")
    parser.add_argument("--statistics-store", type=Path, help="where the probes of training pairs are; else --store")
    parser.add_argument("--shard", type=Shard.named, default=Shard(), help="K/N: one of N parts of every test set")
    options = parser.parse_args()
    requests = read_asked(options.requests)
    with Job(options) as job, Store(options.statistics_store or options.store, device=job.gpu) as statistics_store:
        inference = Inference(job, requests, options.shard, options.statistics, options.length_head)
        inference.run(statistics_store)
        failed = {label: f"{type(error).__name__}: {error}" for label, error in inference.failures.items()}
        for label, error in inference.failures.items():
            errors.tell(error, f"{label}: left to its own job, which will end with ")
        files.write_json(options.out, {"requests": len(requests), "failed": failed})
        job.report("inference")


if __name__ == "__main__":
    run.script(main)
