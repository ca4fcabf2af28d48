"""What the jobs of a model share: their command line, the store, and a model that loads when it must."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from entropy_valley import files, run
from entropy_valley.engine.context import Inputs
from entropy_valley.engine.identity import read_identity
from entropy_valley.engine.ledger import Ledger
from entropy_valley.engine.requests import Memo, Runner
from entropy_valley.errors import InputError
from entropy_valley.progress import progress
from entropy_valley.store import Store

if TYPE_CHECKING:
    from entropy_valley.backbone.loading import Backbone
    from entropy_valley.engine.engine import Engine

UNMERGED = "adapter unmerged"  # in signatures and keys; what is usual goes unsaid
Compute = Callable[[Sequence[int]], Iterator[tuple[int, Any]]]


def arguments(description: str) -> argparse.ArgumentParser:
    """The options of each job; none but the spec and the files can change a number."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--testset", type=Path, required=True)
    parser.add_argument("--backbone", type=Path, required=True, help="a checkpoint folder")
    parser.add_argument("--adapter", type=Path, help="a LoRA adapter folder; without one, the bare backbone")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True, help="folder of finished work, shared between jobs")
    parser.add_argument("--no-store", action="store_true", help="neither read nor write finished work")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of the model")
    parser.add_argument("--token-budget", type=int, help="most tokens in a forward pass")
    return parser


def method_arguments(description: str) -> argparse.ArgumentParser:
    """As :func:`arguments`, and the files of the run that some length methods use."""
    parser = arguments(description)
    parser.add_argument("--statistics", type=Path, help="length statistics of the run, for a method that uses them")
    parser.add_argument("--length-head", type=Path, help="length head of the run, for a method that uses it")
    return parser


class Job:
    """One run of a job: its spec, the test set's rows, the checkpoint's identity, the store and the ledger."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._started = options, time.monotonic()
        self.spec: dict[str, Any] = options.spec
        self.rows = files.read_jsonl(options.testset, ("id", "source", "target"))
        self.identity = read_identity(
            options.backbone, options.adapter, self.spec["family"], self.spec["prompt"], self.spec["bos"]
        )
        self.precision: str = self.spec["precision"]
        self.merge: bool = self.spec.get("merge_adapter", True)
        # What a stored value depends on beside the checkpoint: the rows that are read, and how device and torch round.
        rows = "shifted" if self.spec["shifted"] else "unshifted"
        self.numerics = f"{rows}|{self.precision}|{options.device}|torch {importlib.metadata.version('torch')}"
        if options.adapter and not self.merge:
            self.numerics += f"|{UNMERGED}"
        self.token_budget: int | None = options.token_budget
        self.store = Store(options.store, enabled=not options.no_store)
        self.ledger = Ledger()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: Any) -> None:
        self.store.__exit__(*failure)

    @functools.cached_property
    def inputs(self) -> Inputs:
        """The prompts of the rows, which are read at the first use."""
        prompt, names = self.identity.prompt, [row["id"] for row in self.rows]
        prompts = [prompt.encode(row["source"]) for row in self.rows]
        return Inputs(self._options.testset, names, prompts, prompt.encode(""), self.identity.context)

    @functools.cached_property
    def backbone(self) -> Backbone:
        """The model, loaded at its first use: a job with nothing to compute never imports torch."""
        import torch

        from entropy_valley.backbone.loading import load_backbone

        options = self._options
        torch.set_num_threads(options.threads)
        backbone = load_backbone(
            options.backbone,
            self.spec["family"],
            device=options.device,
            dtype=self.precision,
            adapter=options.adapter,
            merge=self.merge,
            shifted=self.spec["shifted"],
        )
        self._compare_tokenizers(backbone.tokenizer)
        return backbone

    @functools.cached_property
    def engine(self) -> Engine:
        """The exact decoder of canvases, on the model."""
        from entropy_valley.engine.engine import Engine

        return Engine(self.backbone, self.ledger, self.token_budget)

    def runner(self, bar: str) -> Runner:
        """Work on this job's sentences, through its store; ``bar`` names the progress bar."""
        return Runner(lambda: self.engine, self.ledger, Memo(self.store, self.identity.digest, self.numerics), bar)

    def signature(self, *decoder: str) -> dict[str, Any]:
        """What hypotheses depend on beside the data: the decoder, by its parts, the backbone and the adapter."""
        return {
            "decoder": "|".join(decoder if self.merge else (*decoder, UNMERGED)),
            "backbone_digest": self.identity.backbone_digest,
            "adapter_digest": self.identity.adapter_digest,
            "shifted": self.spec["shifted"],
        }

    def _compare_tokenizers(self, trained_with: Any) -> None:
        """The job reads text through ``tokenizer.json`` alone; what transformers, and so training, makes of it must be
        the same."""
        prompt = dataclasses.replace(self.identity.prompt, tokenizer=trained_with)
        for row, tokens in zip(self.rows[:8], self.inputs.prompts, strict=False):
            if prompt.encode(row["source"]) != tokens:
                raise InputError(
                    self._options.backbone,
                    f"tokenizer.json alone reads {row['source']!r} otherwise than transformers does",
                    "Remove tokenizer.json from a copy of the checkpoint, so that both take the slow road.",
                )

    def recall(self, what: str, keys: Sequence[str], compute: Compute) -> list[Any]:
        """The value of each key: from the store, or computed once and put there as soon as it is finished.

        ``compute`` gets the places of the missing keys and yields (place, JSON value) in any order.
        """
        values = {key: value for key in keys if (value := self.store.get(key)) is not None}
        first_places = {key: place for place, key in reversed(list(enumerate(keys)))}
        missing = [place for key, place in first_places.items() if key not in values]
        self.ledger.count(asked=len(keys), computed=len(missing))
        if missing:
            with progress(total=len(missing), description=what, unit="result") as bar:
                for place, value in compute(missing):
                    self.store.put(keys[place], value)
                    values[keys[place]] = value
                    bar.update()
        return [values[key] for key in keys]

    def report(self, what: str) -> None:
        """Say on stderr, and in a file beside the store's shards, what was asked for, shared and computed."""
        seconds = round(time.monotonic() - self._started, 3)
        sys.stderr.write(f"{what}: {self.ledger.text()}; {seconds:.1f} s\n")
        if not self._options.no_store:
            entry = {"job": what, "out": str(self._options.out), "seconds": seconds, **self.ledger.to_json()}
            files.write_json(
                self._options.store / "runs" / f"{os.uname().nodename}-{os.getpid()}-{time.time_ns()}.json", entry
            )
