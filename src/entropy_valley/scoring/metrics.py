"""What files, tables and figures need to know of a metric, and how its numbers are found in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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

    def found_in(self, content: Mapping[str, Any]) -> Any:
        """Its value in a system's scores, a sentence's scores or the signatures of a file; None if it is not there."""
        return next((content[name] for name in (self.name, *self.former_names) if name in content), None)
