"""The reveal orders. A new one is a file and a line here, or a user's own ``module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from entropy_valley import plugins
from entropy_valley.decoding.orders.entropy_weighted_sig import EntropyWeightedSig
from entropy_valley.decoding.orders.hybrid import Hybrid
from entropy_valley.decoding.orders.left_to_right import LeftToRight
from entropy_valley.decoding.orders.med import MinimumEntropy
from entropy_valley.decoding.orders.random_order import Random
from entropy_valley.decoding.orders.reverse_sig import ReverseSig
from entropy_valley.decoding.orders.sig_first import SigFirst

if TYPE_CHECKING:
    from entropy_valley.engine.order import Order

ORDERS: dict[str, type] = {
    "med": MinimumEntropy,
    "sig_first": SigFirst,
    "reverse_sig": ReverseSig,
    "hybrid": Hybrid,
    "entropy_weighted_sig": EntropyWeightedSig,
    "left_to_right": LeftToRight,
    "random": Random,
}


def make_order(name: str, settings: Mapping[str, Any] | None = None) -> Order:
    """The reveal order of that name, built with ``settings`` as keyword arguments; raises InputError."""
    return plugins.make("reveal order", ORDERS, name, settings or {}, ["scores"])
