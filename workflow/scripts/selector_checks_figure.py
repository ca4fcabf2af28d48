"""Draw entropy against the canvas ratio: selector_checks_figure.py SPEC --pdf P --png N --csv C."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.selector_checks import SelectorSpec
from entropy_valley.analysis.valley import curves, over_runs
from entropy_valley.reporting import command, style
from entropy_valley.reporting.selector_checks_figure import sweep_panels
from entropy_valley.reporting.tables import write_csv


def main() -> None:
    spec, paths = command.arguments(__doc__, ("pdf", "png", "csv"), SelectorSpec)
    points = over_runs(curves(spec.cells))
    figure = style.draw(*sweep_panels(spec, points), width=2.6)
    style.save(figure, pdf=paths["pdf"], png=paths["png"])
    write_csv(paths["csv"], points[points["axis"] == "ratios"].drop(columns="lowest", errors="ignore"))


if __name__ == "__main__":
    errors.run(main)
