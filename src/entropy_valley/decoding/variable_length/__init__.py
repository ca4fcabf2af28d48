"""Decoders that change the length of a canvas. A new one is a file and a line here, or a user's ``module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from entropy_valley import plugins
from entropy_valley.decoding.variable_length.daedal import Daedal
from entropy_valley.decoding.variable_length.rho_eos import RhoEos

if TYPE_CHECKING:
    from entropy_valley.decoding.variable_length.base import VariableLengthDecoder

VARIABLE_LENGTH: dict[str, type] = {"daedal": Daedal, "rho_eos": RhoEos}


def make_variable_length(name: str, settings: Mapping[str, Any] | None = None) -> VariableLengthDecoder:
    """The decoder of that name, built with ``settings`` as keyword arguments; raises InputError."""
    return plugins.make("variable-length decoder", VARIABLE_LENGTH, name, settings or {}, ("advance", "cap"))
