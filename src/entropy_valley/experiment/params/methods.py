"""What a config says of its length methods and reveal orders: their selectors, settings and needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entropy_valley.canvas.length_methods import loads_model, uses_length_head, uses_statistics
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.params.parts import dump


def needs_statistics(experiment: Experiment, method: str) -> bool:
    """Whether a method's canvases depend on the length statistics of their run."""
    return _asks(uses_statistics, experiment, method)


def needs_length_head(experiment: Experiment, method: str) -> bool:
    """Whether a method's canvases depend on the length head of their run."""
    return _asks(uses_length_head, experiment, method)


def canvas_needs_model(experiment: Experiment, method: str) -> bool:
    """Whether choosing a method's canvases takes a forward pass; Oracle and any Fixed Ratio take none."""
    return _asks(loads_model, experiment, method)


def _asks(question: Callable[[str, dict[str, Any]], bool], experiment: Experiment, method: str) -> bool:
    """The answer of a method's selector; one that deals another's canvases has none, and needs nothing."""
    settings = dump(getattr(experiment.length_methods, method))
    return settings.get("selector") != "reassigned" and question(method, settings)


def selector_name(experiment: Experiment, method: str) -> str:
    """The selector that a method sets up: its own name, unless its block says another."""
    return getattr(experiment.length_methods, method).selector or method


def selector_settings(experiment: Experiment, method: str, direction: str) -> dict[str, Any]:
    """A method's own block, with what it says by direction narrowed to this one."""
    block = getattr(experiment.length_methods, method)
    return {
        key: value[direction] if isinstance(value, dict) and direction in value else value
        for key, value in dump(block).items()
    }


def reassigned_methods(experiment: Experiment) -> list[str]:
    """The methods that take another's canvases, dealt anew."""
    return [name for name, block in experiment.length_methods if getattr(block, "selector", None) == "reassigned"]


def order_settings(experiment: Experiment, name: str) -> dict[str, Any]:
    """The reveal order that a name of the config stands for, and its settings."""
    block = experiment.reveal_orders.get(name)
    settings = {"order": name} if block is None else dump(block)
    return {"order": settings.pop("order"), "order_settings": settings}
