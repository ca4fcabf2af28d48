"""What `snakemake --report` is of: the tables and figures of a config that are there, and its PDF."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from entropy_valley.errors import InputError, listed
from entropy_valley.experiment import Experiment
from entropy_valley.reporting import document
from entropy_valley.reporting.report import OfTables, Report

SHOWN = ("html", "csv", "png")  # of the files of a table or figure


def asked(arguments: Sequence[str]) -> bool:
    """Whether Snakemake was started for a report."""
    return any(one.split("=")[0] == "--report" for one in arguments)


def targets(experiment: Experiment, ready: Mapping[str, Report]) -> list[str]:
    """The files to show. What is not made yet is left out, and said.

    Raises InputError where nothing is there: the results of a config are found only with that config.
    """
    root = experiment.results
    files = {path: _files(root, path, report) for path, report in ready.items()}
    missing = [path for path, names in files.items() if not all(map(Path.is_file, map(Path, names)))]
    if len(missing) == len(files):
        remedy = "Run the workflow first, and give --report the same --workflow-profile or --configfile as that run."
        if others := list(_elsewhere()):
            remedy = f"For the results that are there, type: {' or '.join(others)}"
        raise InputError(root, "no table or figure of this config is there", remedy)
    if missing:
        print(f"not made yet, so not in the report: {listed(missing, 8)}", file=sys.stderr)
        files = {path: names for path, names in files.items() if not isinstance(ready[path], OfTables)}
    pdf = f"{root}/{document.NAME}.pdf"
    whole = [pdf] if not missing and Path(pdf).is_file() else []
    return [name for path, names in files.items() if path not in missing for name in names] + whole


def section(path: str) -> str:
    """Where the report lists a table or figure."""
    return "Of the paper" if path in document.PAPER else "Ours"


def _files(root: str, path: str, report: Report) -> list[str]:
    return [f"{root}/{path}.{ending}" for ending in report.endings if ending in SHOWN]


def _elsewhere() -> Iterator[str]:
    """What to type for the results of the profiles' own configs, where these have tables."""
    for profile in sorted(Path("profiles").glob("*/config.yaml")):
        named = (yaml.safe_load(profile.read_text("utf-8")) or {}).get("configfile") or []
        contents = [yaml.safe_load(Path(name).read_text("utf-8")) or {} for name in named if Path(name).is_file()]
        results = [content["results"] for content in contents if "results" in content]
        if results and any(Path(results[-1], "tables").glob("*.html")):
            yield f"snakemake --workflow-profile {profile.parent.name} --report report.zip"
