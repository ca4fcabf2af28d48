"""What the tables and the figure of the human evaluation are made of."""

from __future__ import annotations

from operator import itemgetter

from entropy_valley import files
from entropy_valley.analysis.cells import Params, ScoredCell
from entropy_valley.human_evaluation.statistics import frame
from entropy_valley.late import pandas as pd


class HumanParams(Params):
    """As :class:`Params`; the cells are the two systems of each direction, the first one first.

    ``ratings`` has the file of each direction, ``pack`` the sentences of a pack.
    """

    annotators = property(itemgetter("annotators"))
    pack = property(itemgetter("pack"))
    simulated = property(itemgetter("simulated"))

    @property
    def directions(self) -> list[str]:
        return list(dict.fromkeys(cell.direction for cell in self.cells))

    def pair(self, direction: str) -> list[ScoredCell]:
        """The two systems of a direction."""
        return [cell for cell in self.cells if cell.direction == direction]

    def read(self, direction: str) -> pd.DataFrame:
        """The ratings of a direction, see :func:`statistics.frame`."""
        return frame(files.read_jsonl(self["ratings"][direction], ("annotator", "id", "preference")))
