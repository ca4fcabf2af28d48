"""What a metric may use of the job that scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from entropy_valley.store import Store


@dataclass(frozen=True)
class Job:
    """``checkpoint``: a COMET folder or its ``.ckpt`` file, of metrics that have one. ``threads`` are for the CPU and
    change no number. ``store`` keeps finished scores between jobs; None keeps none. With ``from_store``
    a COMET model is never loaded: a score that the store does not have is an InputError.
    """

    target_language: str
    checkpoint: str | Path | None = None
    device: str = "cpu"
    threads: int = 1
    store: Store | None = None
    from_store: bool = False
