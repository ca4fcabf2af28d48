"""Fillings that change the canvas while they denoise it: named where a reveal order is, and run without a budget T."""

from __future__ import annotations

from entropy_valley.decoding.variable_length.daedal import Daedal
from entropy_valley.decoding.variable_length.rho_eos import RhoEos

FILLINGS: dict[str, type] = {"daedal": Daedal, "rho_eos": RhoEos}
