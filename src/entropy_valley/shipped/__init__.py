"""The tiny models that come with this package: each a pre-trained checkpoint, and an adapter for each direction.

``llada-tiny-human`` was trained on sentences that people wrote, ``llada-tiny`` on those of the demo's grammar.
`.ci/ship.py` makes their files. ``origin.json`` says by which command, from which commit and on which CPU, and has the
checkpoint's digest and the first losses of its pre-training; ``checkpoint.json`` in the checkpoint has its settings.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError, unknown

ADAPTER = "adapter-"  # and the direction: the name of an adapter's folder


@dataclass(frozen=True, eq=False)
class Shipped:
    """A tiny model of this package; ``config`` is the file by which it is fine-tuned, ``ratios`` are EV's there."""

    name: str
    config: str
    ratios: Mapping[str, list[float]]

    @property
    def folder(self) -> Path:
        return Path(__file__).parent / self.name

    @property
    def checkpoint(self) -> Path:
        """The folder of its checkpoint, whose weights are in bfloat16."""
        return self.folder / "checkpoint"

    @functools.cached_property
    def origin(self) -> dict[str, Any]:
        """What ``origin.json`` says."""
        return files.read_json(self.folder / "origin.json")

    def adapter(self, direction: str) -> Path:
        """The folder of the adapter for a direction, such as ``en-de``. Raises InputError where there is none."""
        folders = {path.name.removeprefix(ADAPTER): path for path in sorted(self.folder.glob(f"{ADAPTER}*"))}
        if direction not in folders:
            problem = unknown(direction, f"LLaDA-tiny has no adapter for {direction!r}", folders)
            raise InputError("direction", problem, "Give one of these.")
        return folders[direction]

    def arguments(self, direction: str) -> dict[str, Any]:
        """The model as arguments of ``Translator.load`` for a direction. Raises InputError where it has no adapter."""
        return {"backbone": self.checkpoint, "adapter": self.adapter(direction), "ratios": self.ratios[direction]}


GRAMMAR = Shipped(
    "llada-tiny",
    "config/demo.yaml",
    {
        "en-zh": [0.55, 0.62, 0.71, 0.80, 1.00],
        "zh-en": [1.00, 1.25, 1.40, 1.60, 1.83],
        "en-de": [0.83, 1.00, 1.08, 1.17, 1.38],
    },
)
HUMAN = Shipped(
    "llada-tiny-human",
    "config/human.yaml",
    {
        "en-de": [0.90, 1.00, 1.22, 1.43, 1.67],
        "en-zh": [0.67, 0.79, 1.00, 1.14, 1.33],
        "zh-en": [0.75, 0.88, 1.00, 1.26, 1.50],
    },
)
MODELS = {model.name: model for model in (GRAMMAR, HUMAN)}


def newcomer_sentences(language: str) -> list[str]:
    """Sentences of a language, ``en`` or ``zh``, such as a newcomer types: written before a model had seen them."""
    return (Path(__file__).parent / f"newcomer.{language}.txt").read_text(encoding="utf-8").splitlines()


def tiny(direction: str) -> dict[str, Any]:
    """LLaDA-tiny as arguments of ``Translator.load`` for a direction: ``en-de``, ``en-zh`` or ``zh-en``.

    It was trained on short sentences of Tatoeba and of LibreOffice's help. Raises InputError for any other direction.
    """
    return HUMAN.arguments(direction)
