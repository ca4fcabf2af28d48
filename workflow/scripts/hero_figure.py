"""Draw the hero figure: hero_figure.py SPEC --pdf P --png N --csv C."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.reporting import command, style
from entropy_valley.reporting.hero import length_panel
from entropy_valley.reporting.tables import write_csv


def main() -> None:
    spec, summary, paths = command.read(__doc__, ("pdf", "png", "csv"))
    plotted = summary[summary["metric"] == "comet22"]
    style.save(style.draw(length_panel(spec, plotted)), pdf=paths["pdf"], png=paths["png"])
    write_csv(paths["csv"], plotted.assign(panel="A"))


if __name__ == "__main__":
    errors.run(main)
