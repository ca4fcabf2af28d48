"""The reveal orders; a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from entropy_valley import plugins
from entropy_valley.decoding.orders.med import MinimumEntropy

if TYPE_CHECKING:
    from entropy_valley.decoding.orders.base import Order

ORDERS: dict[str, type] = {"med": MinimumEntropy}


def make_order(name: str, settings: Mapping[str, Any] | None = None) -> Order:
    """The order of that name, built with ``settings`` as keyword arguments."""
    return plugins.make("order", ORDERS, name, settings or {})
