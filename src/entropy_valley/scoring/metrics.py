"""What files, tables and figures need to know of a metric."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A metric: its key in files, its name in print, and how its numbers are read.

    ``segments``: it scores sentences too, not only a whole system. ``by_direction``: its signature depends on the
    target language, so that only the cells of one direction must agree in it. ``former_names``: the keys under which
    files of earlier versions hold it.
    """

    name: str
    label: str
    decimals: int
    higher_is_better: bool = True
    segments: bool = True
    reference_free: bool = False
    by_direction: bool = False
    former_names: tuple[str, ...] = ()
