"""The entropy valley: mean entropy of all-mask canvases around the reference's length."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from entropy_valley.errors import InputError
from entropy_valley.experiment.config import matrix
from entropy_valley.experiment.frames import PLACE
from entropy_valley.experiment.stats.summary import CERTAIN
from entropy_valley.experiment.tables.formats import Names
from entropy_valley.experiment.tables.report import Data, diagnostics_files, figure
from entropy_valley.experiment.tables.style import BACKBONE_COLOURS, BACKBONE_MARKERS, GRID, Figure, Panel, legend_above
from entropy_valley.results import DIAGNOSTICS, REMEDY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
AXES = ("offsets", "offsets_complete", "ratios")
POINT = ["backbone", *PLACE, "axis", "at"]
OVER_RUNS, OVER_SENTENCES = "std over runs", "95% of the mean over sentences"


@figure(
    "Mean entropy of all-mask canvases at slots beside the reference's length, one line per backbone: a "
    "diagnostic that sees the reference. Bands are standard deviations over training seeds; for a single run, 95 % "
    "intervals of the mean over sentences.",
    matrix.valley_cells,
    files=diagnostics_files,
    scored=False,
)
def entropy_valley(names: Names, data: Data) -> Figure:
    """A panel for each direction and test set, a line for each backbone.

    All sentences that have a canvas at an offset count: at negative ones those of short references drop out, and the
    CSV has the same curve for the sentences that never do (axis ``offsets_complete``).
    """
    points = over_runs(curves(names, data))
    numbers = points[points["axis"] != "ratios"]
    panels: list[Panel] = []
    for place, lines in numbers[numbers["axis"] == "offsets"].groupby(PLACE, sort=False):
        panels.append(functools.partial(_lines, names, place, lines, not panels))
    return Figure(numbers, panels, width=2.1)


def _lines(names: Names, place: Any, shown: pd.DataFrame, first: bool, axes: Axes) -> None:
    """One direction's lines; the first panel has the legend and names the vertical axis, and the horizontal one for
    all."""

    from matplotlib import ticker

    axes.axvline(0, color=GRID, linewidth=1.5)
    for number, (backbone, line) in enumerate(shown.groupby("backbone", sort=False)):
        # More backbones than colours: the next ones are dashed.
        again, style = divmod(number, len(BACKBONE_COLOURS))
        label = names.backbone(str(backbone))
        draw_line(axes, line, BACKBONE_COLOURS[style], BACKBONE_MARKERS[style], label, dashed=again > 0)
    axes.set_title(names.place(*place))
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.margins(y=0.1)
    if first:
        axes.set_ylabel("mean all-mask entropy (nats)")
        axes.figure.supxlabel("canvas − reference length (slots)", fontsize=axes.xaxis.label.get_fontsize())
        legend_above(axes)


# --- The numbers.


def curves(names: Names, data: Data) -> pd.DataFrame:
    """One row per run, axis (one of ``AXES``) and place on it (``at``: a slot offset from the reference, or a ratio).

    Columns: those of POINT, ``seed``, ``mean`` entropy in nats, ``standard_error``, ``mean_length`` in slots,
    ``sentences``; and ``lowest``, a share, on the axis of complete sentences. Cells of one run and test set share their
    curves.
    """
    rows = []
    for cell in {(cell.run, cell.testset): cell for cell in names.cells}.values():
        content = data.files.diagnostics(cell, "valley")
        if any(axis not in content for axis in AXES):
            place = f"{cell.run.folder(data.files.root)}/{DIAGNOSTICS}"
            raise InputError(place, f"its valley of {cell.testset} lacks one of {', '.join(AXES)}", REMEDY)
        run = {key: getattr(cell, key) for key in ("backbone", *PLACE, "seed")}
        rows += [run | {"axis": axis, **point} for axis in AXES for point in content[axis]]
    return pd.DataFrame(rows).astype({"standard_error": float})


def over_runs(points: pd.DataFrame) -> pd.DataFrame:
    """:func:`curves` averaged over seeds, one row per POINT: ``mean``, ``low``, ``high``, ``spread``, ``runs``, and the
    means of ``sentences``, ``mean_length`` and ``lowest``.

    ``spread`` says what lies between low and high: the sample standard deviation over runs on either side; or, for a
    single run, 95 % of the mean over its sentences (normal approximation).
    """
    groups, averaged = points.groupby(POINT, sort=False), ("sentences", "mean_length", "lowest")
    runs, centre = groups.size(), groups["mean"].mean()
    # One run says nothing of others, so its sentences have to do.
    reach = groups["mean"].std().where(runs > 1, CERTAIN * groups["standard_error"].first())
    spread = np.where(runs > 1, OVER_RUNS, OVER_SENTENCES)
    band = {"mean": centre, "low": centre - reach, "high": centre + reach, "spread": spread, "runs": runs}
    averages = groups[[name for name in averaged if name in points]].mean()
    return pd.DataFrame(band).join(averages).reset_index()


def draw_line(axes: Axes, line: pd.DataFrame, colour: str, marker: str, label: str, dashed: bool = False) -> None:
    """A curve with its band, whatever the band is. A dashed one has white markers."""
    line = line.sort_values("at")
    axes.fill_between(line["at"], line["low"], line["high"], color=colour, alpha=0.2, linewidth=0)
    axes.plot(
        line["at"], line["mean"], linestyle="--" if dashed else "-", color=colour, marker=marker, markersize=3,
        markerfacecolor="white" if dashed else colour, label=label,
    )  # fmt: skip
