"""The look of every figure: one colour per method, quiet axes, embedded fonts, the same bytes every time."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from entropy_valley import files

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure
    from matplotlib.axes import Axes

# Okabe and Ito's palette, told apart under every common colour blindness; a method keeps its colour in all figures.
METHOD_COLOURS = {"oracle": "#595959", "ev": "#0072B2", "ratio": "#E69F00"}
METHOD_MARKERS = {"oracle": "D", "ev": "o", "ratio": "s"}
SERIES_COLOURS = ("#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#F0E442")  # what is not a method
BACKBONE_COLOURS = ("#D55E00", "#CC79A7", "#009E73", "#56B4E9", "#F0E442", "#000000")  # beside methods
BACKBONE_MARKERS = ("^", "v", "P", "X", "<", ">")
INK, GRID, BAND = "#222222", "#D9D9D9", "#EBEBEB"  # the first two are those of the style sheet
FONT = "DejaVu Sans"  # too
ON_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # the box of a text, which hides the grid behind it

SHEET = Path(__file__).with_name("templates") / "figures.mplstyle"
UNDATED = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}  # metadata of each format

LETTER = -0.18  # where a panel's letter stands, left of a legend above the axes, in widths of the axes

LEGEND = 2.0  # inches that a name takes in a legend of all panels
PAGE, COLUMN = 6.3, 3.03  # inches: the width of the text on a page (16 cm), and of one of two columns

Panel = Callable[["Axes"], None]


@dataclass(frozen=True)
class Figure:
    """Panels, each drawn by a function of its axes, in inches; ``numbers`` is the tidy frame of the CSV file."""

    numbers: pd.DataFrame
    panels: Sequence[Panel]
    width: float = COLUMN
    height: float = 2.7

    def draw(self, own: str | None = None) -> figure.Figure:
        """Rows of panels, lettered A, B, … when there are several; ``own`` is a user's matplotlibrc.

        A row has as many panels as fit on a page. So the figure is printed as large as it is drawn, and its letters
        keep their size.
        """
        from matplotlib import figure

        columns = max(1, min(len(self.panels), int(PAGE / self.width + 1e-9)))
        rows = math.ceil(len(self.panels) / columns)
        with look(own):
            drawn = figure.Figure(figsize=(self.width * columns, self.height * rows))
            grid = list(drawn.subplots(rows, columns, squeeze=False).flat)
            for axes in grid[len(self.panels) :]:
                axes.remove()
            for letter, axes, panel in zip("ABCDEFGH", grid, self.panels, strict=False):
                panel(axes)
                if len(self.panels) > 1:
                    axes.set_title(letter, loc="left", x=LETTER, pad=9, fontweight="bold")
            return drawn


def look(own: str | None = None) -> AbstractContextManager[None]:
    """A context of :data:`SHEET`, and above it a user's own ``matplotlibrc``: fonts, sizes, resolution."""
    import matplotlib.style

    return matplotlib.style.context([SHEET, own] if own else [SHEET])


def faint(colour: str) -> tuple[float, float, float]:
    """A colour mixed with white, for what a panel is not about; nothing shines through it."""

    from matplotlib import colors

    red, green, blue = (1 - 0.35 * (1 - share) for share in colors.to_rgb(colour))
    return red, green, blue


def legend_above(axes: Axes) -> None:
    """A legend of what one panel shows, above all panels, where it hides nothing."""
    drawn = axes.figure.get_figure(root=True)
    columns = max(1, int(drawn.get_figwidth() / LEGEND))
    drawn.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=columns, fontsize="small")


def save(drawn: figure.Figure, paths: Mapping[str, Path], own: str | None = None) -> None:
    """Write all formats in one layout, each whole, without a date: the same figure gives the same bytes."""
    with look(own):
        drawn.draw_without_rendering()  # the first layout chooses ticks, the second makes room for their labels
        for kind, undated in UNDATED.items():
            buffer = io.BytesIO()  # matplotlib hides a failed write behind an error of its own
            drawn.savefig(buffer, format=kind, metadata=undated)
            with files.atomic(paths[kind]) as temporary:
                temporary.write_bytes(buffer.getvalue())
            drawn.set_layout_engine("none")  # a second layout moves what the first has placed
