"""`entropy-valley audit`: the state of each cell in a screenful, as a file, and as a page for a browser."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley.errors import InputError, unknown
from entropy_valley.experiment.cli import configs
from entropy_valley.experiment.cli.commands import FILTERS
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import all_cells
from entropy_valley.experiment.runs.audit import DONE, MISSING, STALE, STATES, Audit, CellState
from entropy_valley.experiment.runs.jobs import Jobs, listed
from entropy_valley.experiment.runs.plan import aligned, where
from entropy_valley.experiment.tables import formats, render
from entropy_valley.experiment.tables.names import method_names
from entropy_valley.files import atomic
from entropy_valley.texts import counted

RUNS, REASONS, LOGS = 24, 6, 3  # most rows of runs, reasons of a state, and logs of a reason
COLUMNS = ["backbone", "direction", "seed", "testset", "method", "order", "steps", "pool"]  # of a cell


def audit(arguments: argparse.Namespace) -> None:
    """What `entropy-valley audit` does."""
    only = {name: getattr(arguments, name) for name in (*FILTERS, "state")}
    # Errors of config files name the file also where Snakemake's do not.
    experiment = None if arguments.snakefile else configs.experiment(arguments.configfile)
    jobs = listed(experiment, arguments.configfile, arguments.snakefile)
    require_known(jobs.experiment, only)
    states = report(jobs, only, cells=arguments.cells or bool(arguments.state))
    if arguments.check and (states["state"] != DONE).any():
        sys.exit(1)


def report(jobs: Jobs, only: Mapping[str, Sequence[str]], cells: bool = False) -> pd.DataFrame:
    """Print the audit of a config; return the frame of the cells that are looked at.

    ``only`` has, by a coordinate of cells or ``state``, the names that are looked at; with ``cells`` these are listed.
    An audit of all cells also writes them as a file and as a page, into the folder ``audit`` of the results.
    """
    states = frame(Audit(jobs).cells())
    for column, names in only.items():
        if names:
            states = states[states[column].astype(str).isin(names)]
    print(*runs(states), "", *reasons(states, None if cells else REASONS), sep="\n")
    if cells:
        shown = states.groupby([*COLUMNS[:2], *COLUMNS[3:], "state", "why"], sort=False)["seed"].agg(" ".join)
        print(shown.reset_index().to_string(index=False))
    if jobs.all:
        by_rule = ", ".join(f"{rule} {count}" for rule, count in Counter(job.rule for job in jobs.all).items())
        print(f"Jobs to run: {by_rule}. `entropy-valley plan` says why, and how long they take.")
    print(total(states))
    if not any(only.values()):
        try:
            write(Path(jobs.root, "audit"), states, jobs.experiment, jobs.root)
        except OSError as error:  # another's results may be read-only
            print(f"\nThe page of this audit is not written: {error}")
    return states


def frame(states: Sequence[CellState]) -> pd.DataFrame:
    """A row for each cell: its coordinates, its state, and the rule, the reason and the log behind it."""
    rows = []
    for one in states:
        key: dict[str, Any] = {"pool": "", **one.cell.key(), "seed": str(one.cell.run.seed)}
        told = {
            "rule": " ".join(dict.fromkeys(reason.rule for reason in one.reasons)),
            "why": "; ".join(dict.fromkeys(reason.text for reason in one.reasons)),
            "log": next((reason.log for reason in one.reasons if reason.log), ""),
        }
        rows.append({name: key[name] for name in COLUMNS} | {"state": one.state, **told})
    return pd.DataFrame(rows, columns=[*COLUMNS, "state", "rule", "why", "log"])


def require_known(experiment: Experiment, only: Mapping[str, Sequence[str]]) -> None:
    """Raise InputError for a name in ``only``, see :func:`report`, that no cell of the config has."""
    cells = [cell.key() for cell in all_cells(experiment)]
    problems: dict[str, list[str]] = {}
    for column, names in only.items():
        values = sorted({str(cell[column]) for cell in cells}) if column != "state" else STATES
        for name in names:
            if name not in values:
                problem = unknown(name, f"no cell of the config has the {column} {name!r}", values)
                problems.setdefault(f"--{column}", []).append(problem)
    if problems:
        text = "; ".join(itertools.chain(*problems.values()))
        raise InputError(", ".join(problems), text, "`entropy-valley audit --cells` lists the cells of a config.")


def runs(states: pd.DataFrame) -> Iterator[str]:
    """A row for each backbone and direction, or for each backbone where these are too many: cells of each state."""
    keys = ["backbone", "direction"]
    keys = keys if len(states[keys].drop_duplicates()) <= RUNS else keys[:1]
    present = [state for state in STATES if state in (DONE, MISSING) or (states["state"] == state).any()]
    rows = [[*keys, "seeds", "all", *present]]
    for names, group in states.groupby(keys, sort=False):
        counts = group["state"].value_counts()
        seeds = " ".join(sorted(group["seed"].unique(), key=int))
        rows.append([*names, seeds, str(len(group)), *(str(counts.get(state, "–")) for state in present)])
    yield aligned(rows)


def reasons(states: pd.DataFrame, most: int | None) -> Iterator[str]:
    """Why cells are not done, at most so many reasons of each state: the rule, the reason, the cells, logs of
    failures."""
    for state in (STALE, MISSING):
        groups = list(states[states["state"] == state].groupby(["rule", "why"], sort=False))
        for (rule, why), group in groups[:most]:
            yield f"{state}: {rule}: {why} ({counted(len(group), 'cell')})"
            yield f"    {where(group[COLUMNS[:-1]].astype(str).replace({'': '–', '0': '–'}).to_dict('records'))}"
            logs = [log for log in group["log"].unique() if log]
            yield from (f"    log: {log}" for log in logs[:LOGS])
            if len(logs) > LOGS:
                yield f"    … and {len(logs) - LOGS} more logs beside it"
        if len(groups) > len(groups[:most]):
            yield f"{state}: … and {len(groups) - len(groups[:most])} more reasons; --cells lists all"


def total(states: pd.DataFrame) -> str:
    """The last line."""
    counts = states["state"].value_counts()
    named = ", ".join(f"{counts.get(name, 0)} {name}" for name in STATES if name in counts or name in (DONE, MISSING))
    return f"{len(states)} cells: {named}"


def write(folder: Path, states: pd.DataFrame, experiment: Experiment, root: str) -> None:
    """Write the frame as a file, and as a page with a square for each cell."""
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(folder / "matrix.tsv") as path:
        states.to_csv(path, sep="\t", index=False)
    methods = {name: method_names(experiment, name) for name in states["method"].unique()}
    data = {
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "results": root,
        "way": os.path.relpath(root, folder),
        "states": STATES,
        "labels": {
            "method": {name: method.label for name, method in methods.items()},
            "short": {name: method.short for name, method in methods.items()},
            "order": formats.ORDERS,
        },
        "cells": states.to_dict("records"),
    }
    render.write_page(folder / "matrix.html", "matrix", f"Matrix of {root}", data)
