"""What a metric may use of the job that scores, and the options that such jobs share."""

from __future__ import annotations

import argparse
import functools
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import run
from entropy_valley.gpus import device_name
from entropy_valley.store import Store


@dataclass(frozen=True)
class Job:
    """``checkpoint``: a COMET folder or its ``.ckpt`` file, of metrics that have one. ``threads`` are for the CPU and
    change no number. ``store`` keeps finished scores between jobs; None keeps none. ``from_store``: no COMET model is
    loaded, and a score that the store does not have is an InputError.
    """

    target_language: str
    checkpoint: str | Path | None = None
    device: str = "cpu"
    threads: int = 1
    store: Store | None = None
    from_store: bool = False

    @functools.cached_property
    def devices(self) -> list[str]:
        """How the store's keys name the device, a GPU by its model: that of this job, or, of a job that reads the store
        alone, those that have computed what is there."""
        if self.device.startswith("cuda") and self.from_store:
            return (self.store and self.store.devices()) or [self.device]
        return [device_name(self.device)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of each job that scores."""
    parser.add_argument(
        "spec", type=run.params, help="a JSON file, or JSON: target_language, comet: {checkpoint, batch_size}, …"
    )
    parser.add_argument("--testset", required=True)
    parser.add_argument("--comet", required=True, help="a COMET folder or its .ckpt file: the main metric")
    parser.add_argument("--checkpoint", action="append", default=[], help="METRIC=PATH: the same for a further metric")
    parser.add_argument("--store", required=True, help="folder of finished work, shared between jobs")
    parser.add_argument("--device", default="cpu", help="of the models; a score is kept by the device that it is from")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of the models")


def open_store(options: argparse.Namespace) -> Store:
    """The store of such a job, which leaves the name of its GPU there, if it computes on one."""
    no_store, from_store = (getattr(options, name, False) for name in ("no_store", "from_store"))
    gpu = options.device.startswith("cuda") and not from_store
    return Store(options.store, enabled=not no_store, device=device_name(options.device) if gpu else None)


def checkpoints(options: argparse.Namespace, main_metric: str) -> dict[str, str]:
    """Where each metric's COMET checkpoint is, by its key in files."""
    return {main_metric: options.comet, **dict(pair.split("=", 1) for pair in options.checkpoint)}
