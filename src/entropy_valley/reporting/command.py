"""The command line that every table and figure script has."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from entropy_valley.analysis.scores import collect
from entropy_valley.analysis.spec import Spec
from entropy_valley.analysis.summary import summarise

if TYPE_CHECKING:
    import pandas as pd


Kind = TypeVar("Kind", bound=Spec)


def arguments(description: str | None, endings: Sequence[str], kind: type[Kind] = Spec) -> tuple[Kind, dict[str, Path]]:
    """The spec and the path to write for each ending: ``SPEC --tex T --csv C …``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("spec", help="JSON, or @file.json")
    for ending in endings:
        parser.add_argument(f"--{ending}", type=Path, required=True)
    paths = vars(parser.parse_args())
    return kind.parse(paths.pop("spec"), ("metric_name",)), paths


def read(description: str | None, endings: Sequence[str]) -> tuple[Spec, pd.DataFrame, dict[str, Path]]:
    """As :func:`arguments`, with the summary of the spec's cells between the two."""
    spec, paths = arguments(description, endings)
    return spec, summarise(collect(spec.cells)), paths
