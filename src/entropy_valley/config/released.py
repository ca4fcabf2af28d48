"""Models with all that belongs to them, for the library: those that the paper's authors released, and LLaDA-tiny."""

from __future__ import annotations

from typing import Any

from entropy_valley.config.load import INSTALLED, base_files, load_files
from entropy_valley.config.methods import method_settings
from entropy_valley.demo import shipped
from entropy_valley.errors import InputError, unknown

RELEASED = "config/released.yaml"
DEMO = "config/demo.yaml"


def released(direction: str) -> dict[str, Any]:
    """What belongs together for a direction, such as ``en-zh``, as arguments of ``Translator.load``.

    ``backbone`` and ``adapter`` are repositories of the hub, ``prompt`` is that of the adapter's training, and
    ``ratios`` are those that EV tries in the paper. Raises InputError for a direction without a released adapter.
    """
    experiment = load_files([*base_files(INSTALLED), INSTALLED / RELEASED])
    backbone = experiment.tables.backbone
    adapters = experiment.released[backbone]
    if direction not in adapters:
        problem = unknown(direction, f"no released adapter for {direction!r}", adapters)
        raise InputError("direction", problem, "Give one of these.")
    (adapter,) = adapters[direction].values()
    return {
        "backbone": experiment.backbones[backbone].hub.repository,
        "adapter": adapter.repository + (f"@{adapter.revision}" if adapter.revision else ""),
        "prompt": experiment.directions[direction].prompt,
        "ratios": method_settings(experiment, "ev", direction)["ratios"],
    }


def tiny(direction: str) -> dict[str, Any]:
    """LLaDA-tiny, the demo's model, which comes with this package: arguments of ``Translator.load`` for a direction.

    It knows the words of the demo's made-up sentences. Raises InputError for a direction other than ``en-zh``,
    ``zh-en`` and ``en-de``.
    """
    adapter = shipped.adapter(direction)
    experiment = load_files([*base_files(INSTALLED), INSTALLED / DEMO])
    return {
        "backbone": shipped.CHECKPOINT,
        "adapter": adapter,
        "ratios": method_settings(experiment, "ev", direction)["ratios"],
    }
