"""The benchmarks' figures, in the look of all others."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from entropy_valley.experiment.tables.style import METHOD_COLOURS, Figure, Panel, faint, save


def speed_figure(table: pd.DataFrame, path: Path) -> None:
    """Sentences per second of each method, a panel for each shape; ``path`` without an ending."""
    shapes = [rows for _, rows in table.groupby("shape", sort=False)]
    height = 0.3 * len(shapes[0]) + 0.9
    figure = Figure(table, [*map(_speed_panel, shapes)], width=4.6, height=height).draw()
    save(figure, {kind: path.with_suffix(f".{kind}") for kind in ("pdf", "svg", "png")})


def _speed_panel(rows: pd.DataFrame) -> Panel:
    def panel(axes: Axes) -> None:
        names = rows.length_method + ": " + rows.method
        ours = rows.method.str.startswith("engine")
        colours = [METHOD_COLOURS[name.lower()] for name in rows.length_method]
        shown = [colour if own else faint(colour) for colour, own in zip(colours, ours, strict=True)]
        bars = axes.barh(names, rows.sentences_per_second, color=shown)
        axes.bar_label(bars, fmt=" %.2f", fontsize=7)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.15)
        axes.set_xlabel(f"sentences per second, {rows['shape'].iloc[0]}")

    return panel


def growth_figure(table: pd.DataFrame, path: Path) -> None:
    """Seconds per sentence against what grows, a panel for each; ``path`` without an ending."""
    panels = [_growth_panel(name, rows) for name, rows in table.groupby("grows", sort=False)]
    figure = Figure(table, panels, width=2.5, height=2.2).draw()
    save(figure, {kind: path.with_suffix(f".{kind}") for kind in ("pdf", "svg", "png")})


def _growth_panel(name: str, rows: pd.DataFrame) -> Panel:
    def panel(axes: Axes) -> None:
        axes.plot(rows.value, rows.seconds_per_sentence, "o-", color=METHOD_COLOURS["ev"])
        axes.set_xlabel(name)
        axes.set_ylabel("seconds per sentence")
        axes.set_ylim(bottom=0)

    return panel
