"""What systems cost, from the headers of their translations: means over sentences, then over runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from entropy_valley.analysis.params import ScoredCell
from entropy_valley.analysis.summary import SETTING
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd
from entropy_valley.results import REMEDY, header_path

SYSTEM = (*SETTING, "method")
TOTALS = ("calls", "slots", "passes", "within_steps")  # of a header's cell


def costs(cells: Iterable[ScoredCell]) -> pd.DataFrame:
    """One row per system: the columns of SYSTEM, then the means over runs of what a sentence takes.

    ``calls`` and ``slots`` as the paper counts them, ``passes`` as the engine needs them; ``within_steps`` is the
    share of canvases that more steps than T leave as they are. ``length_mae`` is the header's own mean, NaN where it
    has none. Raises :class:`InputError` for a header that lacks a total.
    """
    rows = [{key: getattr(cell, key) for key in SYSTEM} | per_sentence(cell) for cell in cells]
    frame = pd.DataFrame(rows).drop(columns="sentences")
    return frame.groupby(list(SYSTEM), sort=False, as_index=False).mean()


def with_costs(summary: pd.DataFrame, cells: Iterable[ScoredCell]) -> pd.DataFrame:
    """A summary of scores (:func:`summary.summarise`), each row with the costs of its system."""
    return summary.merge(costs(cells), on=list(SYSTEM), how="left", validate="many_to_one")


def per_sentence(cell: ScoredCell, more: Sequence[str] = ()) -> dict[str, float]:
    """What a sentence of one cell takes on average, as :func:`costs` names it, and ``more`` of the header's totals; and
    the number of ``sentences``."""
    info = cell.decoding()
    missing = [name for name in ("sentences", *TOTALS, *more) if name not in info]
    if missing:
        raise InputError(cell.within(header_path(cell.translations_file)), f"no {', '.join(missing)}", REMEDY)
    means = {name: info[name] / info["sentences"] for name in (*TOTALS, *more)}
    return {"sentences": info["sentences"], **means, "length_mae": float(info.get("length_mae", math.nan))}
