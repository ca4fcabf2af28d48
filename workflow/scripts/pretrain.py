"""Pre-train a tiny backbone on the train splits (demo only); a killed run resumes."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import locks, provenance, run
from entropy_valley.backbone.checkpoint import MANIFEST


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    named = {"type": _named_path, "nargs": "+", "required": True, "metavar": "DIRECTION=PATH"}
    parser.add_argument("--corpus", help="train.jsonl files", **named)
    parser.add_argument("--dev", help="dev.jsonl files", **named)
    parser.add_argument("--out", type=Path, required=True, help="checkpoint folder, written whole")
    parser.add_argument("--work", type=Path, required=True, help="checkpoints, outside any declared output")
    parser.add_argument("--logs", type=Path, required=True, help="TensorBoard files")
    parser.add_argument("--checkpoint-every", type=int, required=True, metavar="STEPS")
    parser.add_argument("--threads", type=int, default=1)
    arguments = vars(parser.parse_args())

    from entropy_valley.training import processes

    processes.use_threads(arguments.pop("threads"))

    from entropy_valley.demo import pretraining

    corpora, dev = dict(arguments.pop("corpus")), dict(arguments.pop("dev"))
    job = pretraining.Job(corpora=corpora, dev=dev, **arguments)
    inputs = [*corpora.values(), *dev.values()]
    record = provenance.made("pretrain", job.spec, inputs, [job.out / MANIFEST], whole_folder=True)
    with locks.locked(job.out), record:  # of two runs one works, and the other finds its work
        pretraining.pretrain(job)


def _named_path(text: str) -> tuple[str, Path]:
    name, found, path = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not DIRECTION=PATH")
    return name, Path(path)


if __name__ == "__main__":
    run.script(main)
