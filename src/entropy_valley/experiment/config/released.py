"""The models of the paper's authors with all that belongs to them, for the library."""

from typing import Any

from entropy_valley.errors import InputError, unknown
from entropy_valley.experiment.config.load import INSTALLED, RELEASED, base_files, load_files
from entropy_valley.experiment.config.methods import method_settings


def released(direction: str) -> dict[str, Any]:
    """What belongs together for a direction, such as ``en-zh``, as arguments of ``Translator.load``.

    ``backbone`` and ``adapter`` are repositories of the hub, ``prompt`` is that of the adapter's training, and
    ``ratios`` are those that EV tries in the paper. Raises InputError for a direction without a released adapter.
    """
    experiment = load_files([*base_files(INSTALLED), INSTALLED / RELEASED])
    backbone = experiment.tables.backbone
    hub, adapters = experiment.backbones[backbone].hub, experiment.released[backbone]
    if direction not in adapters:
        problem = unknown(direction, f"no released adapter for {direction!r}", adapters)
        raise InputError("direction", problem, "Give one of these.")
    (adapter,) = adapters[direction].values()
    return {
        "backbone": hub and hub.repository,
        "adapter": f"{adapter.repository}@{adapter.revision}" if adapter.revision else adapter.repository,
        "prompt": experiment.directions[direction].prompt,
        "ratios": method_settings(experiment, "ev", direction)["ratios"],
    }
