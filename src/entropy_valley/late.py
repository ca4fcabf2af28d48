"""Heavy packages that load when something of them is first used.

Every start of Snakemake, every nested one and every command asks the reports what they are made of; only making one
takes data frames and figures.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class _Late:
    """Stands for a module and imports it when it is asked for anything."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


if TYPE_CHECKING:
    import matplotlib
    import numpy
    import pandas
    import scipy
    from matplotlib import colors, figure, font_manager, ticker
    from statsmodels.stats import inter_rater, power
else:
    numpy, pandas, scipy, matplotlib = map(_Late, ("numpy", "pandas", "scipy", "matplotlib"))
    colors, figure, font_manager, ticker = (
        _Late(f"matplotlib.{name}") for name in ("colors", "figure", "font_manager", "ticker")
    )
    inter_rater, power = (_Late(f"statsmodels.stats.{name}") for name in ("inter_rater", "power"))
