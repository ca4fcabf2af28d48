"""What the tables and the figure of the human evaluation are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from entropy_valley import files
from entropy_valley.analysis.params import Params, ScoredCell
from entropy_valley.human_evaluation.statistics import frame
from entropy_valley.late import pandas as pd


@dataclass(frozen=True)
class HumanParams(Params):
    """As :class:`Params`; the cells are the two systems of each direction, the first one first.

    ``ratings`` has the file of each direction, ``pack`` the sentences of a pack.
    """

    ratings: Mapping[str, str] = field(default_factory=dict)
    annotators: Sequence[str] = ()
    pack: int = 0
    simulated: bool = False

    @property
    def directions(self) -> list[str]:
        return list(dict.fromkeys(cell.direction for cell in self.cells))

    def pair(self, direction: str) -> list[ScoredCell]:
        """The two systems of a direction."""
        return [cell for cell in self.cells if cell.direction == direction]

    def read(self, direction: str) -> pd.DataFrame:
        """The ratings of a direction, see :func:`statistics.frame`."""
        return frame(files.read_jsonl(self.ratings[direction], ("annotator", "id", "preference")))
