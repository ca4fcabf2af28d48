"""LLaDA-tiny as it comes with this package: a checkpoint that is pre-trained, and an adapter for each direction.

`.ci/ship.py` makes these files. ``origin.json`` says by which command, from which commit and on which CPU, and has the
checkpoint's digest and the first losses of its pre-training; ``checkpoint.json`` in the checkpoint has its settings.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError, unknown

LLADA_TINY = Path(__file__).parent / "llada-tiny"
RATIOS = {  # of EV, as in config/demo.yaml
    "en-zh": [0.55, 0.62, 0.71, 0.80, 1.00],
    "zh-en": [1.00, 1.25, 1.40, 1.60, 1.83],
    "en-de": [0.83, 1.00, 1.08, 1.17, 1.38],
}
CHECKPOINT = LLADA_TINY / "checkpoint"  # its weights are in bfloat16
ORIGIN = LLADA_TINY / "origin.json"
ADAPTER = "adapter-"  # and the direction: the name of an adapter's folder


@functools.cache
def origin() -> dict[str, Any]:
    """What ``origin.json`` says."""
    return files.read_json(ORIGIN)


def adapter(direction: str) -> Path:
    """The folder of the adapter for a direction, such as ``en-de``. Raises InputError where there is none."""
    folders = {path.name.removeprefix(ADAPTER): path for path in sorted(LLADA_TINY.glob(f"{ADAPTER}*"))}
    if direction not in folders:
        problem = unknown(direction, f"LLaDA-tiny has no adapter for {direction!r}", folders)
        raise InputError("direction", problem, "Give one of these.")
    return folders[direction]


def tiny(direction: str) -> dict[str, Any]:
    """LLaDA-tiny as arguments of ``Translator.load`` for a direction: ``en-zh``, ``zh-en`` or ``en-de``.

    It knows the words of the demo's made-up sentences. Raises InputError for any other direction.
    """
    return {"backbone": CHECKPOINT, "adapter": adapter(direction), "ratios": RATIOS[direction]}
