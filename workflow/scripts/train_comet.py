"""Train the toy COMET on corrupted references, check it on held-out ones, and write it as COMET does."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files, folders, locks, provenance, run
from entropy_valley.demo import toy_comet, toy_comet_training
from entropy_valley.demo.settings import Estimator
from entropy_valley.scoring.comet_checkpoint import CHECKPOINT

IDENTITY = "comet.json"
TOKENIZER_PAIRS = 20_000


def main() -> None:
    options = _options()
    settings = {key: value for key, value in options.spec.items() if key != "revision"}
    config = Estimator.model_validate(settings)
    identity = {
        "revision": options.spec["revision"],
        "settings": config.model_dump(),
        "corpora": {_direction(path): files.file_digest(path) for path in options.corpus},
        "dev": {_direction(path): files.file_digest(path) for path in options.dev},
    }
    inputs, first = [*options.corpus, *options.dev], options.out / IDENTITY
    record = provenance.made("train_comet", options.spec, inputs, [first], whole_folder=True)
    with locks.locked(options.out), record:  # of two runs one works, and the other finds its work
        if not _is_finished(options.out, identity):
            with folders.atomic(options.out) as folder:
                _make(config, options.corpus, options.dev, folder, identity)


def _is_finished(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Whether the COMET in ``folder`` is this one. That of the version before does not say its revision, 1, and dev."""
    checkpoint = folder / CHECKPOINT
    if not (folder / IDENTITY).exists() or not checkpoint.exists():
        return False
    known = {"revision": 1, "dev": identity["dev"], **files.read_json(folder / IDENTITY)}
    wanted = {**identity, "digest": files.file_digest(checkpoint)}
    return all(known.get(key) == value for key, value in wanted.items()) and provenance.stands(folder / IDENTITY)


def _make(
    config: Estimator, corpora: Sequence[Path], dev: Sequence[Path], folder: Path, identity: Mapping[str, Any]
) -> None:
    """Train, check, write: nothing is at its final place before it has passed the check."""
    import torch

    torch.set_num_threads(1)  # one thread gives one result, on any number of cores
    pairs = toy_comet_training.draw_pairs(_read(corpora), config.steps * config.pairs, config.seed)
    texts = (text for pair in pairs[:TOKENIZER_PAIRS] for text in (pair.source, pair.target))
    model = toy_comet.new_model(folder, toy_comet.train_tokenizer(texts, config), config)
    toy_comet_training.train(model, toy_comet_training.examples(pairs, config), config)
    correlations = toy_comet_training.evaluate(model, _read(dev), config.seed + 2)
    toy_comet_training.check(correlations["all"], config.minimum_spearman)
    checkpoint = toy_comet.write_checkpoint(model, folder)
    found = {"digest": files.file_digest(checkpoint), "spearman": correlations}
    files.write_json(folder / IDENTITY, {**identity, **found})


def _read(paths: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
    return {_direction(path): files.read_jsonl(path, ("source", "target")) for path in paths}


def _direction(path: Path) -> str:
    return path.absolute().parent.name


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="JSON or its file: seed, steps and other fields of Estimator")
    parser.add_argument("--corpus", type=Path, nargs="+", required=True, help="training pairs: {direction}/train.jsonl")
    parser.add_argument("--dev", type=Path, nargs="+", required=True, help="held-out pairs: {direction}/dev.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="the COMET folder")
    return parser.parse_args()


if __name__ == "__main__":
    run.script(main)
