"""Writes the times of a finished demo for the tests, where ``make demo-full`` has run alone:
``python tests/forecast/record.py > tests/forecast/demo-full.json``. On 22 November: two cores of a virtual machine."""

from __future__ import annotations

import json

from entropy_valley.experiment import base_files, load_files
from entropy_valley.experiment.matrix import all_cells
from entropy_valley.forecast.rates import measured
from entropy_valley.forecast.texts import Texts
from entropy_valley.reporting import reports

CONFIGS = ("config/demo.yaml", "config/demo-full.yaml")


def main() -> None:
    experiment = load_files([*base_files(), *CONFIGS], reports.problems)
    texts, known = Texts(experiment), {}
    for cell in all_cells(experiment):
        for name in (cell.testset, "train"):
            text = texts.of(cell.run.direction, name)
            known[f"{cell.run.direction}/{name}"] = [round(value, 2) for value in vars(text).values()]
    seconds = {key: round(value, 1) for key, value in sorted(measured(experiment.results).items())}
    print(json.dumps({"texts": known, "seconds": seconds}, indent=0))


if __name__ == "__main__":
    main()
