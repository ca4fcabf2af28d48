"""What a run took beside what was planned: ``run.md`` in the folder of its results, written at its end.

SLURM says what it has reserved and how long jobs have waited, if its accounting (``sacct``) answers; the log of a job
begins with its number there. Elsewhere, Snakemake's benchmarks say how long a job ran and how much memory it took.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import files, machine
from entropy_valley.runs.jobs import Job, finished
from entropy_valley.runs.plan import RUN, Plan, duration, hours
from entropy_valley.stats.job_costs import peak_memory

COLUMNS = ("JobIDRaw", "Submit", "Start", "ElapsedRaw", "TimelimitRaw", "MaxRSS")


@dataclass(frozen=True)
class Allocation:
    """One job of SLURM, all its starts together: seconds in the queue and running, seconds of its time limits, and the
    bytes of its largest process."""

    waited: float
    ran: float
    reserved: float
    memory: float


def write(plan: Plan, since: float) -> str:
    """Report the jobs with a model that have ended ``since`` then (seconds since 1970); the line for all, "" if none
    has. ``plan`` is from before the run."""
    root = Path(plan.experiment.results)
    done = {
        job: seconds
        for job, seconds in finished(plan.experiment).items()
        # `snakemake --touch` makes benchmarks newer, but no log.
        if all(path.stat().st_mtime >= since for path in (_benchmark(root, job), _log(root, job)) if path.is_file())
    }
    if not done:
        return ""
    numbers = {job: _number(_log(root, job)) for job in done}
    allocations = _allocations(filter(None, numbers.values()))
    together: dict[str, list[Job]] = {}  # jobs by the rules that share an allocation
    for job, number in numbers.items():
        beside = {other.rule for other, of in numbers.items() if of == number} if number in allocations else {job.rule}
        together.setdefault(", ".join(sorted(beside)), []).append(job)
    rows: dict[str, tuple[float, ...]] = {}
    for rules, jobs in together.items():
        gpus = {job: max(1, plan.held(job)) for job in jobs}
        planned = sum(plan.expected(job) * gpus[job] for job in jobs) / 3600
        own = {numbers[job]: gpus[job] for job in jobs if numbers[job] in allocations}
        if own:
            rows[rules] = (len(own), planned, *_granted(allocations, own))
        else:
            used = sum(done[job] * gpus[job] for job in jobs) / 3600
            rows[rules] = (len(jobs), planned, used, 0, 0, max(peak_memory(_benchmark(root, job)) for job in jobs))
    whole = [sum(column) for column in zip(*rows.values(), strict=True)]
    unit, text = ("GPU-hours", hours) if plan.gpus else ("time", _duration)
    names = ("planned", "used", "reserved", "waited")
    line = f"{unit}: " + ", ".join(f"{name} {text(value)}" for name, value in zip(names, whole[1:5], strict=True))
    files.write_text(root / RUN, _page(line, rows, text))
    return line


def _duration(number: float) -> str:
    """Hours as seconds, minutes, hours or days."""
    return duration(3600 * number) if number else "–"


def _granted(allocations: Mapping[str, Allocation], gpus: Mapping[str, int]) -> tuple[float, float, float, float]:
    """GPU-hours used and reserved by allocations with so many GPUs, hours that they waited, and their most memory."""
    used, reserved = (
        sum(getattr(allocations[number], name) * count for number, count in gpus.items()) / 3600
        for name in ("ran", "reserved")
    )
    waited, memory = (sum(allocations[one].waited for one in gpus), max(allocations[one].memory for one in gpus))
    return used, reserved, waited / 3600, memory


def _page(line: str, rows: Mapping[str, Sequence[float]], amount: Callable[[float], str]) -> str:
    lines = [
        line,
        "",
        "| rule | allocations | planned | used | reserved | waited | most memory |",
        f"|---{'|--:' * 6}|",
    ]
    for rules, (count, *amounts, memory) in rows.items():
        cells = (rules, str(count), *map(amount, amounts), machine.amount(memory) if memory else "–")
        lines.append(f"| {' | '.join(cells)} |")
    text = "Waited: hours in the queue. Planned: for all cells of a set, also those that were in the store."
    return "\n".join([*lines, "", text, ""])


def _benchmark(root: Path, job: Job) -> Path:
    return root / "benchmarks" / f"{job.name}.tsv"


def _log(root: Path, job: Job) -> Path:
    return root / "logs" / f"{job.name}.log"


def _number(log: Path) -> str:
    """The number of a job in SLURM, with which its log begins; "" elsewhere."""
    if not log.is_file():
        return ""
    with open(log, encoding="utf-8", errors="replace") as file:
        first = re.fullmatch(r"SLURM job (\d+)\n", file.readline())
    return first[1] if first else ""


def _allocations(numbers: Iterable[str]) -> dict[str, Allocation]:
    """What ``sacct`` says of jobs by their numbers; nothing where it does not answer."""
    wanted = sorted(set(numbers))
    options = ["--duplicates", "--noheader", "--parsable2", "--noconvert", f"--format={','.join(COLUMNS)}"]
    text = machine.ask_slurm("sacct", f"--jobs={','.join(wanted)}", *options).stdout if wanted else ""
    found: dict[str, Allocation] = {}
    for name, submitted, started, ran, minutes, memory in (row.split("|") for row in text.splitlines()):
        number, _, step = name.partition(".")
        old = found.get(number, Allocation(0, 0, 0, 0))
        if step:  # the memory of its processes, at most
            size = float(memory) if memory.isdecimal() else 0.0
            found[number] = Allocation(old.waited, old.ran, old.reserved, max(old.memory, size))
        elif started.isdecimal() and submitted.isdecimal() and minutes.isdecimal():
            waited = old.waited + max(0, int(started) - int(submitted))
            found[number] = Allocation(waited, old.ran + int(ran), old.reserved + 60 * int(minutes), old.memory)
    return {number: one for number, one in found.items() if one.ran}
