"""Draw the selectors' scores against their passes: systems_figure.py SPEC --pdf P --png N --csv C."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.costs import with_costs
from entropy_valley.reporting import command, style
from entropy_valley.reporting.systems_figure import WIDTH, panel_height, system_panels
from entropy_valley.reporting.tables import write_csv


def main() -> None:
    spec, summary, paths = command.read(__doc__, ("pdf", "png", "csv"))
    plotted = with_costs(summary[summary["metric"] == "comet22"], spec.cells)
    figure = style.draw(*system_panels(spec, plotted), width=WIDTH, height=panel_height(plotted))
    style.save(figure, pdf=paths["pdf"], png=paths["png"])
    write_csv(paths["csv"], plotted)


if __name__ == "__main__":
    errors.run(main)
