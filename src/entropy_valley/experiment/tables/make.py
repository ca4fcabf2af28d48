"""Makes whatever is shown of results, by the path of its first file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from entropy_valley.experiment import tables
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.tables import document, live, pages


def make(experiment: Experiment, outputs: Sequence[str], inputs: Iterable[str]) -> None:
    """Make a table or figure, the page of a test set's sentences, the live page, or the document of all.

    ``outputs`` are its files, in the folder of results that has the ``inputs``.
    """
    out = Path(outputs[0])
    if out.name == live.NAME:
        live.write(experiment, outputs[0], inputs)
    elif out.name == f"{document.NAME}.tex":
        document.write(experiment, tables.configured(experiment), out)
    elif out.parent.name == "pages":
        direction, testset = out.stem.split(".", 1)
        pages.write(experiment, (direction, testset), outputs[0], inputs)
    else:
        report = tables.configured(experiment)[f"{out.parent.name}/{out.name.partition('.')[0]}"]
        report.write(outputs[: len(report.endings)], inputs)
