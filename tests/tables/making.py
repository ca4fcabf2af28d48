"""Reports made from made-up params, as their script makes them."""

from __future__ import annotations

from entropy_valley.stats.cells import Params
from entropy_valley.tables import style


def made(kind, params):
    """The table and the numbers of a report."""
    report = kind()
    return report.made(Params(params))


def drawn(kind, params):
    """The figure and the numbers of a report."""
    report = kind()
    parsed = Params(params)
    numbers = report.numbers(parsed)
    panels, height = report.panels(parsed, numbers), report.panel_height(numbers)
    return style.draw(*panels, width=report.width, height=height), numbers


def one_backbone(params, name="llada-tiny"):
    """Params of the cells of one backbone."""
    return params | {"cells": [cell for cell in params["cells"] if cell["backbone"] == name]}
