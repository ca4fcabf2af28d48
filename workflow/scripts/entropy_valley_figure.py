"""Draw the entropy valley: entropy_valley_figure.py SPEC --pdf P --png N --csv C."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.valley import curves, over_runs
from entropy_valley.reporting import command, style
from entropy_valley.reporting.entropy_valley_figure import valley_panels
from entropy_valley.reporting.tables import write_csv


def main() -> None:
    spec, paths = command.arguments(__doc__, ("pdf", "png", "csv"))
    points = over_runs(curves(spec.cells))
    figure = style.draw(*valley_panels(spec, points), width=2.6)
    style.save(figure, pdf=paths["pdf"], png=paths["png"])
    write_csv(paths["csv"], points[points["axis"] != "ratios"])


if __name__ == "__main__":
    errors.run(main)
