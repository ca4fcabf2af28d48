"""Prints what the jobs of a config will cost, and where jobs have run, how right the forecast is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from entropy_valley.experiment import Experiment
from entropy_valley.experiment.result import Result, collect
from entropy_valley.forecast.downloads import Download, gigabytes, total
from entropy_valley.forecast.forecast import Forecast, Hindsight, Stage
from entropy_valley.forecast.rates import PAPERS
from entropy_valley.reporting import against, terminal
from entropy_valley.reporting.changes import counted, said

RUNS = 40  # most rows of runs
SMALL = "a few small ones, as `all` and `overlap`, which only a dry run counts"
LISTED = 12  # most downloads by name
PRIOR = f"""
The stages marked “paper” have no finished job that says how fast this GPU is. Their speed is that with which the whole
matrix of config.yaml takes the paper's {PAPERS:.0f} hours on H20. One finished job of a stage replaces it."""


def report(experiment: Experiment, configs: Sequence[str | Path], slots: Sequence[int] = ()) -> None:
    """Print what is left to run of a config and what it will take; on ``slots`` GPUs, or cores."""
    forecast = Forecast(experiment, against.jobs(experiment).values())
    print(*heading(experiment, configs), sep="\n")
    print(f"Jobs:     {len(forecast.tasks)} are left to run, and {SMALL}")
    print(f"          {counted(len(forecast.there), 'result')} are there\n")
    if forecast.left:
        show(forecast, slots)
    if found := forecast.hindsight:
        show_hindsight(found)


def heading(experiment: Experiment, configs: Iterable[str | Path]) -> list[str]:
    """Which config it is, and of what: the first lines of any run."""
    matrix = experiment.matrix
    trained = dict.fromkeys(experiment.directions[name].train for name in matrix.directions)
    return [
        f"Config:   {', '.join(map(str, configs))}",
        f"Models:   {', '.join(matrix.backbones)}; pairs of {', '.join(trained)}; on {experiment.device}",
        f"Results:  {experiment.results}",
    ]


def first_lines(
    forecast: Forecast, found: Sequence[Download], configs: Iterable[str | Path], cores: int | None = None
) -> list[str]:
    """What a run says before all else: its config, what it will cost, and what it would download. ``cores`` are those
    that it may use; None: of a cluster."""
    if forecast.experiment.device == "cuda":
        cost = f"about {hours(forecast.gpu_seconds)} GPU-hours"
    else:
        cost = f"about {duration(forecast.wall_clock(cores or 1))} on {counted(cores or 1, 'core')}"
    fetched = f"{total(found)} to download" if found else "nothing to download"
    cost = f"Cost:     {cost}; {fetched} (more: `entropy-valley plan`)"
    return [*heading(forecast.experiment, configs), cost, *_assumed(forecast, " " * 10), ""]


def _assumed(forecast: Forecast, indent: str = "") -> list[str]:
    """What a forecast takes for granted of checkpoints that are not there."""
    found = forecast.assumed.items()
    return [f"{indent}{path}: not there; counts as large as {model} until it is" for path, model in found]


def show(forecast: Forecast, slots: Sequence[int] = ()) -> None:
    """Print a forecast: its stages and runs, the time on several GPUs, disk and downloads."""
    gpus = forecast.experiment.device == "cuda"
    _print(["stage", "jobs", "models loaded", "time of all", *["GPU-hours"] * gpus, "speed from"], _stages(forecast))
    if runs := forecast.by_run():
        _print(["direction", "backbone", "seed", "time on GPUs" if gpus else "time"], _runs(runs))
    for count in slots or ((1, 8) if gpus else (1, 2)):
        what = counted(count, "GPU" if gpus else "core")
        print(f"On {what}: about {duration(forecast.wall_clock(count))}")
    print(*_assumed(forecast), sep="\n", end="\n" * bool(forecast.assumed))
    disk = forecast.disk
    parts = ", ".join(f"{name} {gigabytes(size)}" for name, size in disk.items())
    print(f"Disk: about {gigabytes(disk.total())}" + f" ({parts})" * bool(parts))
    found = forecast.downloads
    print(f"Downloads: {total(found) if found else 'none'}", *(f"  {one}" for one in found[:LISTED]), sep="\n")
    if len(found) > LISTED:
        print(f"  … and {len(found) - LISTED} more")
    if gpus and any(stage.gpu_seconds and not stage.finished for stage in forecast.stages):
        print(PRIOR)
    print()


def _stages(forecast: Forecast) -> list[list[str]]:
    """A row for each stage, and one for all; GPU-hours where there are GPUs."""
    gpus = forecast.experiment.device == "cuda"
    stages = forecast.stages
    loads, jobs = sum(one.loads for one in stages), sum(one.jobs for one in stages)
    whole = Stage("all", jobs, loads, forecast.seconds, forecast.gpu_seconds, 0)
    return [
        [
            *(one.name, str(one.jobs), str(one.loads or "–"), duration(one.seconds)),
            *[hours(one.gpu_seconds)] * gpus,
            "" if one is whole else _origin(one),
        ]
        for one in (*stages, whole)
    ]


def _origin(stage: Stage) -> str:
    if stage.finished:
        return f"{counted(stage.finished, 'finished job')}"
    return "paper" if stage.gpu_seconds else "usual"


def _runs(runs: dict[tuple[str, str, str], float]) -> list[list[str]]:
    """A row for each run, or for all runs of a direction and backbone where they are many."""
    if len(runs) <= RUNS:
        return [[*key, duration(seconds)] for key, seconds in runs.items()]
    groups: dict[tuple[str, str], list[float]] = {}
    for (direction, backbone, _), seconds in runs.items():
        groups.setdefault((direction, backbone), []).append(seconds)
    return [[*key, f"{len(of)} runs" if len(of) > 1 else "1 run", duration(sum(of))] for key, of in groups.items()]


def show_hindsight(found: Sequence[Hindsight]) -> None:
    """Print the forecast from the first run's jobs beside what all others took."""
    print("Forecast from the jobs of the first run alone, and what the others took:")
    rows = [
        [one.stage, str(one.jobs), duration(one.forecast), duration(one.measured), f"{one.error:+.0%}"] for one in found
    ]
    _print(["stage", "jobs", "forecast", "measured", "error"], rows)


def _print(header: list[str], rows: Sequence[Sequence[str]]) -> None:
    terminal.print_table(header, rows, sections=False)


def hours(seconds: float) -> str:
    """Hours with two digits."""
    return f"{seconds / 3600:,.0f}" if seconds >= 36_000 else f"{seconds / 3600:.2g}" if seconds else "–"


def duration(seconds: float) -> str:
    """Seconds, minutes, hours or days."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}"
    return f"{seconds:.0f} s"


def report_change(before: Experiment, after: Experiment, slots: Sequence[int] = (), *, cells: bool = False) -> None:
    """Print what the jobs that a changed config runs again or anew will take, where all jobs of the first are done.

    ``cells`` also lists each cell that changes, with the first reason on its way and its share of the time.
    """
    compared = against.compare(before, after)
    left = {compared.after[key]: None for key in [*compared.again, *compared.added]}
    forecast = Forecast(after, compared.after.values(), left)
    print()
    if not left:
        print("It costs nothing: no job runs.")
        return
    show(forecast, slots)
    if cells:
        header = ["direction", "backbone", "seed", "testset", "system", "time", "why"]
        _print(header, _changed_cells(after, compared, forecast))


def _changed_cells(after: Experiment, compared: against.Comparison, forecast: Forecast) -> list[list[str]]:
    """A row for each score that is made; the time of a job that cells share is divided among them."""
    tasks: dict[Result, list[str]] = {}
    for key, task in forecast.tasks.items():
        for job in task.results:
            tasks.setdefault(job, []).append(key)
    chains = {job: _chain(job, forecast.left) for job in forecast.left if job.rule == "score"}
    keys = {score: {key for job in jobs for key in tasks[job]} for score, jobs in chains.items()}
    users = Counter(key for of in keys.values() for key in of)
    rows = []
    for score, jobs in chains.items():
        took = sum(forecast.rates.seconds(forecast.tasks[key]) / users[key] for key in keys[score])
        cell = [score.wildcards[name] for name in ("direction", "backbone", "seed", "testset", "system")]
        rows.append([*cell, duration(took), _why(after, compared, jobs)])
    return rows


def _chain(job: Result, left: Collection[Result]) -> list[Result]:
    """A job and those of ``left`` that it waits for, those that others need first."""
    found: dict[Result, None] = {}
    collect(job, found)
    return [one for one in found if one in left]


def _why(after: Experiment, compared: against.Comparison, jobs: Iterable[Result]) -> str:
    """The first change of params on the way to a cell, else that it is new."""
    for job in jobs:
        for change in compared.again.get(job.key, ()):
            return f"{job.rule}: {said(after, job.rule, job.wildcards, change, [job.wildcards.get('method', '')])}"
    return "new"
