"""What a metric may use of the job that scores."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path

from entropy_valley.machine import device_name
from entropy_valley.store import Store


@dataclass(frozen=True)
class Job:
    """``checkpoint``: a COMET folder or its ``.ckpt`` file, of metrics that have one. ``threads`` are for the CPU and
    change no number. ``store`` keeps finished scores between jobs; without a folder it keeps none.
    """

    target_language: str
    checkpoint: str | Path | None = None
    device: str = "cpu"
    threads: int = 1
    store: Store = field(default_factory=lambda: Store(None))

    @functools.cached_property
    def device_name(self) -> str:
        """How the store's keys name the device: a GPU by its model."""
        return device_name(self.device)
