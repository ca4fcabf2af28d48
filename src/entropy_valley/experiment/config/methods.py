"""The length methods and reveal orders of a config: their classes, their settings, and what they need."""

import functools
from typing import Any

from entropy_valley import plugins
from entropy_valley.decoding.orders import SourceGuided
from entropy_valley.experiment.config.schema import BLOCKS, Experiment, order_class
from entropy_valley.lengths.base import declared
from entropy_valley.lengths.baselines import Reassigned
from entropy_valley.settings import numbers_of


def base_method(experiment: Experiment, method: str) -> str:
    """The length method that a block sets up."""
    return getattr(experiment.length_methods, method).method


def method_settings(experiment: Experiment, method: str, direction: str, backbone: str | None = None) -> dict[str, Any]:
    """A method's block without its label. Of values by direction it has that of this direction; of a user's class also
    its code. ``backbone``: whose keys of `decoding` count."""
    block = getattr(experiment.length_methods, method)
    settings = {
        key: value[direction] if isinstance(value, dict) and direction in value else value
        for key, value in dump(block).items()
        if key != "method"
    }
    if block.method != method:  # else the block's name says it
        settings["method"] = plugins.with_code(block.method)
    decoding = experiment.decoding_of(backbone) if backbone else experiment.decoding
    if not decoding.exact_products and "exact" in getattr(_class(experiment, method), "model_fields", ()):
        settings.setdefault("exact", False)
    return settings


def grid(experiment: Experiment, method: str, direction: str) -> list[float]:
    """The ratios of a length method in a direction, ascending; the one of a fixed ratio; none of a method without."""
    if not hasattr(experiment.length_methods, method):
        return []
    ratios = method_settings(experiment, method, direction).get("ratios") or []
    return [ratios] if isinstance(ratios, float) else [] if isinstance(ratios, dict) else sorted(ratios)


@functools.cache
def declares(experiment: Experiment, method: str, name: str) -> Any:
    """What a method declares under a name, such as ``learns``: :class:`.LengthMethod` says what there is."""
    return declared(_class(experiment, method), name)


def _class(experiment: Experiment, method: str) -> type:
    return plugins.find("length method", BLOCKS, base_method(experiment, method))


def is_ratio_without_slot(experiment: Experiment, method: str) -> bool:
    """Whether a method is a fixed ratio as the paper's, without a slot for the EOS."""
    block = getattr(experiment.length_methods, method)
    return base_method(experiment, method) == "ratio" and not block.reserve_eos_slot


def reassigned_methods(experiment: Experiment) -> list[str]:
    """The methods that reassign the canvas ratios of another method."""
    return [name for name, block in experiment.length_methods if isinstance(block, Reassigned)]


def origins(experiment: Experiment, method: str) -> list[str]:
    """The method whose canvas ratios a method reassigns; none for any other."""
    block = getattr(experiment.length_methods, method)
    return [block.of] if isinstance(block, Reassigned) else []


def order_settings(experiment: Experiment, name: str) -> dict[str, Any]:
    """The reveal order that a name of the config stands for, with its code if it is a user's, and its settings as the
    config has them, without defaults: the store identifies results by these."""
    block = experiment.reveal_orders.get(name)
    if block is None:
        return {"order": name, "order_settings": {}}
    settings = block.model_dump(mode="json", exclude={"order"}, exclude_unset=True, exclude_none=True)
    return {"order": plugins.with_code(block.order), "order_settings": settings}


def source_guided(experiment: Experiment, name: str) -> bool:
    """Whether the reveal order that a name of the config stands for looks at the SIG."""
    return issubclass(order_class(experiment, name), SourceGuided)


def dump(section: Any) -> dict[str, Any]:
    """The values of a section that numbers depend on, without those that are null."""
    return {key: value for key, value in numbers_of(section).items() if value is not None}
