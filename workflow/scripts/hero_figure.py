"""Draw the hero figure: hero_figure.py SPEC --pdf P --png N --csv C."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import errors
from entropy_valley.analysis.scores import collect
from entropy_valley.analysis.spec import Spec
from entropy_valley.analysis.summary import summarise
from entropy_valley.reporting import style
from entropy_valley.reporting.hero import length_panel
from entropy_valley.reporting.tables import write_csv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", help="JSON, or @file.json")
    for suffix in ("pdf", "png", "csv"):
        parser.add_argument(f"--{suffix}", type=Path, required=True)
    arguments = parser.parse_args()
    spec = Spec.parse(arguments.spec, ("metric_name",))
    summary = summarise(collect(spec.cells))
    plotted = summary[summary["metric"] == "comet22"]
    style.save(style.draw(length_panel(spec, plotted)), pdf=arguments.pdf, png=arguments.png)
    write_csv(arguments.csv, plotted.assign(panel="A"))


if __name__ == "__main__":
    errors.run(main)
