"""`entropy-valley audit`: the state of each cell in a screenful, as a file, and as a page for a browser."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from entropy_valley.experiment.cli import configs
from entropy_valley.experiment.runs.audit import DONE, MISSING, STALE, STATES, Audit, CellState
from entropy_valley.experiment.runs.jobs import listed
from entropy_valley.experiment.runs.plan import aligned, where
from entropy_valley.experiment.tables import render
from entropy_valley.files import atomic
from entropy_valley.texts import counted

REASONS, LOGS = 6, 3  # most reasons of a state, and logs of a reason
COLUMNS = ["backbone", "direction", "seed", "testset", "method", "order", "steps", "pool"]  # of a cell


def audit(arguments: argparse.Namespace) -> None:
    """Print the audit of a config, and write its cells into the folder ``audit`` of the results."""
    if not arguments.snakefile:
        configs.experiment(arguments.configfile)  # its errors name the file also where Snakemake's do not
    jobs = listed(arguments.configfile, arguments.snakefile)
    states = frame(Audit(jobs).cells())
    counts = states["state"].value_counts()
    present = [state for state in STATES if state != STALE or state in counts]
    print(runs(states, present), "", *reasons(states), sep="\n")
    if jobs.all:
        by_rule = ", ".join(f"{rule} {count}" for rule, count in Counter(job.rule for job in jobs.all).items())
        print(f"Jobs to run: {by_rule}. `entropy-valley plan` says why, and how long they take.")
    print(f"{len(states)} cells: {', '.join(f'{counts.get(state, 0)} {state}' for state in present)}")
    try:
        write(jobs.experiment.results, states)
    except OSError as error:  # another's results may be read-only
        print(f"\nThe page of this audit is not written: {error}")
    if arguments.check and counts.get(DONE, 0) < len(states):
        sys.exit(1)


def frame(states: Sequence[CellState]) -> pd.DataFrame:
    """A row for each cell: its coordinates, its state, and the rule, the reason and the log behind it."""
    rows = []
    for cell, state, reasons in states:
        row = {"pool": "", **cell.key(), "seed": str(cell.seed), "state": state}
        row["rule"] = " ".join(dict.fromkeys(reason.rule for reason in reasons))
        row["why"] = "; ".join(dict.fromkeys(reason.text for reason in reasons))
        row["log"] = next((reason.log for reason in reasons if reason.log), "")
        rows.append(row)
    return pd.DataFrame(rows, columns=[*COLUMNS, "state", "rule", "why", "log"])


def runs(states: pd.DataFrame, present: Sequence[str]) -> str:
    """A row for each backbone and direction: cells of each state."""
    rows = [["backbone", "direction", "seeds", "all", *present]]
    for names, group in states.groupby(["backbone", "direction"], sort=False):
        counts = group["state"].value_counts()
        seeds = " ".join(sorted(group["seed"].unique(), key=int))
        rows.append([*names, seeds, str(len(group)), *(str(counts.get(state, "–")) for state in present)])
    return aligned(rows)


def reasons(states: pd.DataFrame) -> Iterator[str]:
    """Why cells are not done, and the logs of failures."""
    for state in (STALE, MISSING):
        groups = list(states[states["state"] == state].groupby(["rule", "why"], sort=False))
        for (rule, why), group in groups[:REASONS]:
            yield f"{state}: {rule}: {why} ({counted(len(group), 'cell')})"
            yield f"    {where(group[COLUMNS[:-1]].astype(str).replace({'': '–', '0': '–'}).to_dict('records'))}"
            logs = [log for log in group["log"].unique() if log]
            yield from (f"    log: {log}" for log in logs[:LOGS])
        if len(groups) > REASONS:
            yield f"{state}: … and {len(groups) - REASONS} more reasons; audit/matrix.tsv of the results has all"


def write(results: str, states: pd.DataFrame) -> None:
    """Write the frame as a file, and as a page with a square for each cell."""
    folder = Path(results, "audit")
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(folder / "matrix.tsv") as path:
        states.to_csv(path, sep="\t", index=False)
    made = time.strftime("%Y-%m-%d %H:%M")
    data = {"made": made, "results": results, "states": STATES, "cells": states.to_dict("records")}
    render.write_page(folder / "matrix.html", "matrix", f"Matrix of {results}", data)
