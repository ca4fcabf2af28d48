"""Draw the hero figure: hero_figure.py SPEC --pdf P --png N --csv C."""

from __future__ import annotations

import pandas as pd

from entropy_valley import errors
from entropy_valley.reporting import command, style
from entropy_valley.reporting.hero import length_panel, reference_panel
from entropy_valley.reporting.results import by_kind
from entropy_valley.reporting.tables import write_csv


def main() -> None:
    spec, summary, paths = command.read(__doc__, ("pdf", "png", "csv"))
    plotted = summary[summary["metric"] == "comet22"]
    denoised, autoregressive = by_kind(spec, plotted)
    panels, numbers = [length_panel(spec, denoised)], [denoised.assign(panel="A")]
    if len(autoregressive):
        panels.append(reference_panel(spec, plotted))
        numbers.append(plotted.assign(panel="B"))
    style.save(style.draw(*panels), pdf=paths["pdf"], png=paths["png"])
    write_csv(paths["csv"], pd.concat(numbers))


if __name__ == "__main__":
    errors.run(main)
