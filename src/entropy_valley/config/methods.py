"""The length methods and reveal orders of a config: their classes, their settings, and what they need."""

from __future__ import annotations

from typing import Any

from entropy_valley import plugins
from entropy_valley.config.schema import Experiment
from entropy_valley.decoding.orders import KNOWN, SourceGuided, looks_at_anchors
from entropy_valley.lengths import find_method


def base_method(experiment: Experiment, method: str) -> str:
    """The length method that a block sets up: the block's ``method``, or its name."""
    return getattr(experiment.length_methods, method).method or method


def method_settings(experiment: Experiment, method: str, direction: str) -> dict[str, Any]:
    """A method's block without its label. Of values by direction it has that of this direction; of a user's class also
    its code."""
    block = getattr(experiment.length_methods, method)
    settings = {
        key: value[direction] if isinstance(value, dict) and direction in value else value
        for key, value in dump(block).items()
        if key != "label"
    }
    if "method" in settings:
        settings["method"] = plugins.with_code(settings["method"])
    binary = not experiment.decoding.exact_products and "exact" in type(block).model_fields
    return {"exact": False, **settings} if binary else settings


def needs_statistics(experiment: Experiment, method: str) -> bool:
    """Whether a method's canvases depend on the length statistics of their run."""
    return _attribute(experiment, method, "uses_statistics", False)


def needs_length_head(experiment: Experiment, method: str) -> bool:
    """Whether a method's canvases depend on the length head of their run."""
    return _attribute(experiment, method, "uses_length_head", False)


def sees_reference(experiment: Experiment, method: str) -> bool:
    """Whether a method's canvases are as long as references."""
    return _attribute(experiment, method, "sees_reference", False)


def _attribute(experiment: Experiment, method: str, attribute: str, default: bool) -> bool:
    """An attribute of a method's class. A reassigned method has no class, and needs nothing."""
    name = base_method(experiment, method)
    return name != "reassigned" and getattr(find_method(name, {}), attribute, default)


def is_ratio_without_slot(experiment: Experiment, method: str) -> bool:
    """Whether a method is a fixed ratio as the paper's, without a slot for the EOS."""
    block = getattr(experiment.length_methods, method)
    return base_method(experiment, method) == "ratio" and not block.reserve_eos_slot


def reassigned_methods(experiment: Experiment) -> list[str]:
    """The methods that reassign the canvas ratios of another method."""
    return [name for name, block in experiment.length_methods if getattr(block, "method", None) == "reassigned"]


def order_settings(experiment: Experiment, name: str) -> dict[str, Any]:
    """The reveal order that a name of the config stands for, with its code if it is a user's, and its settings."""
    block = experiment.reveal_orders.get(name)
    settings = {"order": name} if block is None else dump(block)
    return {"order": plugins.with_code(settings.pop("order")), "order_settings": settings}


def source_guided(experiment: Experiment, name: str) -> bool:
    """Whether the reveal order that a name of the config stands for looks at the SIG."""
    return issubclass(_order_class(experiment, name), SourceGuided)


def needs_anchors(experiment: Experiment, name: str) -> bool:
    """Whether the reveal order that a name of the config stands for looks at a gold alignment."""
    return looks_at_anchors(_order_class(experiment, name))


def _order_class(experiment: Experiment, name: str) -> type:
    return plugins.find("reveal order", KNOWN, order_settings(experiment, name)["order"])


def dump(section: Any) -> dict[str, Any]:
    """A section of the config as plain values, without those that are null."""
    return section.model_dump(mode="json", exclude_none=True)
