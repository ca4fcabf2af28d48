"""The workflow profile of a command line. Snakemake runs without it, and with another config, where it is not there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from entropy_valley.errors import InputError
from entropy_valley.spelling import question

NONE = "none"


def require(arguments: Sequence[str], workflow: str | Path) -> None:
    """Raise InputError for a ``--workflow-profile`` that is neither here nor in the workflow's folder."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--workflow-profile", default=NONE)
    name = parser.parse_known_args(list(arguments))[0].workflow_profile
    folders = [Path(name), Path("profiles", name), Path(workflow, "profiles", name)]
    if name != NONE and not any(folder.exists() for folder in folders):
        known = sorted(path.name for path in Path(workflow, "profiles").iterdir())
        remedy = f"{question(name, known)}Name one of {', '.join(known)}."
        raise InputError(f"--workflow-profile {name}", "no such profile", remedy)
