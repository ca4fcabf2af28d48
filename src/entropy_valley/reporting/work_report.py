"""The ledgers of all jobs of a results folder, added up: models loaded, results asked for, shared, computed, and what
that took.

A job with the store writes one when it ends; a job that was killed leaves none, and one that is run again adds another.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.engine.ledger import Ledger
from entropy_valley.errors import InputError
from entropy_valley.experiment.matrix import Run
from entropy_valley.reporting import terminal

_LEDGER = tuple(field.name for field in fields(Ledger))
_REQUIRED = tuple(name for name in _LEDGER if name != "padded")  # older ledgers do not count it
_METHODS = ("calls", "slots")
COUNTS = ("jobs", "loads", "asked", "shared", "computed", "passes", "tokens", "padded", "rows", "seconds", *_METHODS)
TITLES = ("jobs", "models loaded", "asked for", "shared", "computed")
TITLES += ("passes", "tokens", "padding", "head rows", "seconds")
# A canvas job makes its probes for the method that decodes: that one's count has them.
METHODS_OWN = ("method's calls", "method's slots")


@dataclass(frozen=True, order=True)
class Kind:
    """All jobs of one kind on one run."""

    direction: str
    backbone: str
    seed: int
    pool: str
    job: str


def add_up(results: Path) -> dict[Kind, Counter[str]]:
    """The :data:`COUNTS` of each kind of job, in order of the runs.

    ``calls`` and ``slots`` are what the methods whose translations are there need as the paper counts them: probes and
    all T steps, each over all slots; of a beam search its decoder passes alone. Raises InputError where no job has
    left a ledger, or one that is none.
    """
    sums: defaultdict[Kind, Counter[str]] = defaultdict(Counter)
    for path in sorted(results.glob("store/*/*/seed*/runs/*.json")):
        entry = _entry(path)
        sums[_kind(path.parents[1], entry["job"])].update({name: entry[name] for name in COUNTS if name in entry})
    if not sums:
        remedy = "Name a results folder, such as results/demo, whose jobs have run with `store: true`."
        raise InputError(results / "store", "no ledger of any job", remedy)
    for path in sorted(results.glob("*/*/seed*/**/decoding.json")):
        info = files.read_json(path)
        run = results.joinpath(*path.relative_to(results).parts[:3])
        job = "decode" if "slots" in info else "generate"
        sums[_kind(run, job)].update({name: info[name] for name in _METHODS if name in info})
    return dict(sorted(sums.items()))


def report(results: Path, path: Path | None = None) -> None:
    """Print the sums of each run and of each kind of job, and the total; on request write the former as CSV."""
    sums = add_up(results)
    if path:
        write_csv(path, sums)
    header = ["direction", "backbone", "seed", "pool", "job", *TITLES, *METHODS_OWN]
    terminal.print_table(header, [*_by_run(sums), *_by_job(sums)])
    print(total_line(sums))


def write_csv(path: Path, sums: Mapping[Kind, Counter[str]]) -> None:
    """One line for each run and kind of job; what there is no count of is left empty."""
    with files.atomic(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*vars(next(iter(sums))), *COUNTS])
        for kind, counts in sums.items():
            writer.writerow([*vars(kind).values(), *_values(counts)])


def total_line(sums: Mapping[Kind, Counter[str]]) -> str:
    """All jobs in one line."""
    whole = sum(sums.values(), Counter())
    return (
        f"{whole['jobs']} jobs: {Ledger(**{name: whole[name] for name in _LEDGER}).text()}; {whole['seconds']:.1f} s. "
        f"The methods, as the paper counts: {whole['calls']} calls over {whole['slots']} slots"
    )


def _entry(path: Path) -> dict[str, Any]:
    entry = files.read_json(path)
    if isinstance(entry, dict):
        entry.setdefault("loads", 0)  # of before loads were counted
    missing = [name for name in ("job", "seconds", *_REQUIRED) if not isinstance(entry, dict) or name not in entry]
    if missing:
        raise InputError(path, f"no {', '.join(missing)}", "This is no job's ledger: remove the file.")
    return {**entry, "jobs": 1, "shared": entry["asked"] - entry["computed"]}


def _kind(folder: Path, job: str) -> Kind:
    """Of the folder of a run."""
    return Kind(*vars(Run.named(*folder.parts[-3:])).values(), job)


def _values(counts: Counter[str]) -> list[int | float | str]:
    return [round(counts[name], 3) if name in counts else "" for name in COUNTS]


def _texts(counts: Counter[str]) -> list[str]:
    seconds = COUNTS.index("seconds")
    return [
        "–" if value == "" else f"{value:,.1f}" if place == seconds else f"{value:,}"
        for place, value in enumerate(_values(counts))
    ]


def _by_run(sums: Mapping[Kind, Counter[str]]) -> list[list[str]]:
    """Table rows; a run is named in its first."""
    rows, before = [], None
    for kind, counts in sums.items():
        run = (kind.direction, kind.backbone, str(kind.seed), kind.pool)
        rows.append([*(run if run != before else [""] * len(run)), kind.job, *_texts(counts)])
        before = run
    return rows


def _by_job(sums: Mapping[Kind, Counter[str]]) -> list[Sequence[str]]:
    jobs: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for kind, counts in sums.items():
        jobs[kind.job].update(counts)
    return [("" if place else "all", "", "", "", job, *_texts(jobs[job])) for place, job in enumerate(sorted(jobs))]
