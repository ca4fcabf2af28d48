"""The schematic of Entropy-Valley: probes of all-mask canvases, the valley of their entropies, the canvas, denoising.

The lengths are those of the config's ratios for a source of :data:`SOURCE` tokens, and as many slots are revealed at
each step as by the config's schedule. The entropies and the order of the slots are drawn, not measured.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.experiment.config.methods import grid
from entropy_valley.experiment.tables import style
from entropy_valley.experiment.tables.report import Data, Figure, Names, figure
from entropy_valley.lengths.base import candidate_length

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SOURCE = 20  # tokens of the drawn sentence
LOWEST = 1  # the candidate where the drawn valley is
GOLDEN = 0.618  # steps of it through the slots are the drawn reveal order
LEFT, RIGHT, CURVE = 0.62, 2.1, (2.32, 2.92)  # inches: the slots lie between the first two, the curve in the last
LINE, ROWS = 0.155, 11  # inches from row to row; rows beside those of the candidates
MASK, EOS, TEXT, EV = "#C9C9C9", "#FFFFFF", "#F3D9A4", style.METHOD_COLOURS["ev"]


@figure(
    "Entropy-Valley, schematically. One pass over an all-mask canvas of each candidate length gives its mean entropy, "
    "without the last slot (white), which is kept for the EOS. The canvas of the lowest mean is denoised, the most "
    "certain slots first. Lengths and steps follow the configured ratios and schedule; entropies and the order of "
    "slots are drawn, not measured.",
    lambda experiment: [],
    scored=False,
    wanted=lambda names: "ev" in names.experiment.matrix.methods,
)
def method(data: Data) -> Figure:
    """Probes, valley, canvas and denoising, from top to bottom, at the width of a column. The numbers have a row for
    each candidate: its slots, its drawn entropy between 0 and 1, and whether it is chosen."""
    ratios = grid(data.experiment, "ev", data.experiment.matrix.directions[0])
    lowest = min(LOWEST, len(ratios) - 1)
    most = max(lowest, len(ratios) - 1 - lowest) or 1
    rows = []
    for number, ratio in enumerate(ratios):
        # Steeper away from the lowest point, so that it is seen at once.
        drawn = 0.15 + 0.85 * (abs(number - lowest) / most) ** 1.5
        slots = candidate_length(ratio, SOURCE)
        rows.append({"ratio": ratio, "slots": slots, "drawn_entropy": drawn, "chosen": number == lowest})
    numbers, height = pd.DataFrame(rows), LINE * (len(rows) + ROWS)
    return Figure(numbers, [functools.partial(_draw, data, numbers, height)], height=height)


def _draw(names: Names, candidates: pd.DataFrame, height: float, axes: Axes) -> None:
    """Everything, in inches from the lower left corner."""
    axes.set_xlim(0, style.COLUMN)
    axes.set_ylim(0, height)
    axes.axis("off")
    slot = (RIGHT - LEFT) / max(SOURCE, candidates["slots"].max())
    rows = (height - LINE * (number + 0.5) for number in itertools.count())
    _text(axes, 0, next(rows), "1  Probes: one pass each", weight="bold")
    _text(axes, CURVE[0] - 0.2, height - 0.5 * LINE, "2  Valley", weight="bold")
    _slots(axes, next(rows), f"|x| = {SOURCE}", slot, [TEXT] * SOURCE)
    heights = [next(rows) for _ in candidates.itertuples()]
    for y, one in zip(heights, candidates.itertuples(), strict=True):
        _slots(axes, y, f"{one.ratio:g} · |x|", slot, _masked(one.slots), edge=EV if one.chosen else style.INK)
    _curve(axes, heights, candidates)
    next(rows)
    (chosen,) = candidates.loc[candidates["chosen"], "slots"]
    _text(axes, 0, next(rows), f"3  Canvas: the lowest mean entropy, L = {chosen}", weight="bold")
    _slots(axes, next(rows), "", slot, _masked(chosen), edge=EV)
    next(rows)
    tables = names.experiment.tables
    _text(axes, 0, next(rows), f"4  Denoising: {tables.steps} steps, most certain slots first", weight="bold")
    # Steps of the golden ratio reveal neighbours at different times.
    order = sorted(range(chosen), key=lambda place: place * GOLDEN % 1)
    schedule = names.experiment.decoding_of(tables.backbone).schedule  # how many slots each step reveals
    for step, count in snapshots(chosen, tables.steps, schedule).items():
        shown, y = order[:count], next(rows)
        colours = [EV if place in shown else colour for place, colour in enumerate(_masked(chosen))]
        _slots(axes, y, f"step {step}", slot, colours)
        if count == chosen and step < tables.steps:
            _text(axes, LEFT + (chosen + 1) * slot, y, f"steps {step + 1}–{tables.steps}: none left")


def snapshots(length: int, steps: int, schedule: str) -> dict[int, int]:
    """The steps at which a quarter, a half, three quarters and all of the slots are first revealed, and how many are.

    A step that is the first one for several of these shares comes once.
    """
    revealed = list(itertools.accumulate(reveal_counts(length, steps, schedule)))
    firsts = [next(step for step, count in enumerate(revealed) if 4 * count >= part * length) for part in (1, 2, 3, 4)]
    return {step + 1: revealed[step] for step in firsts}


def _text(axes: Axes, x: float, y: float, text: str, **look: Any) -> None:
    axes.text(x, y, text, va="center", fontsize="small", **look)


def _masked(slots: int) -> list[str]:
    """An all-mask canvas; its last slot is kept for the EOS."""
    return [*[MASK] * (slots - 1), EOS]


def _slots(axes: Axes, y: float, label: str, slot: float, colours: Sequence[str], edge: str = style.INK) -> None:
    _text(axes, 0, y, label)
    left = [LEFT + number * slot for number in range(len(colours))]
    axes.bar(
        left, 0.8 * LINE, slot, y - 0.4 * LINE, align="edge", color=colours, edgecolor=edge,
        linewidth=1.0 if edge == EV else 0.5,
    )  # fmt: skip


def _curve(axes: Axes, heights: Sequence[float], candidates: pd.DataFrame) -> None:
    """The mean entropy of each canvas beside it, and an arrow from the lowest one."""
    low, high = CURVE
    places = [low + (high - low) * value for value in candidates["drawn_entropy"]]
    axes.plot(places, heights, color=style.INK, linewidth=0.8, marker="o", markersize=3)
    for place, y, chosen in zip(places, heights, candidates["chosen"], strict=True):
        if chosen:
            axes.plot([place], [y], color=EV, marker="o", markersize=5.5)
    _text(axes, low, heights[-1] - LINE, "mean entropy →")
