"""The jobs of a workflow, as Snakemake tells them.

Which jobs there are, what each reads and writes, and why it runs, Snakemake decides alone: a dry run tells it through
our logger plugin, by Snakemake's public interface. Here a job gets what the config says of it by its wildcards: the
params that its numbers depend on, and the cells that it computes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import Experiment, params, paths
from entropy_valley.experiment.config.load import load_merged
from entropy_valley.experiment.config.matrix import Cell
from entropy_valley.experiment.runs import JOBS, name_of
from entropy_valley.experiment.runs.job import rule_of
from entropy_valley.experiment.stats.job_costs import finished_seconds

SHOWING = ("table", "comparison", "figure", "page", "live", "document", "pdf")  # rules that only show results
# Of a job as Snakemake tells it, what is kept.
FIELDS = ("rule_name", "wildcards", "input", "output", "log", "benchmark", "reason")
RULES = (*params.SPECS, *SHOWING)


@dataclass(frozen=True, eq=False)
class Job:
    """One job. ``rule`` is that of our workflow, also where another one has it under a prefix; ``outputs`` are its
    files, the first of which has the record beside it. ``log`` and ``benchmark`` are "" for a rule without. ``reason``
    is why Snakemake runs it, in its words."""

    experiment: Experiment
    rule: str
    wildcards: Mapping[str, str]
    outputs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    log: str = ""
    benchmark: str = ""
    reason: str = ""

    @classmethod
    def of(cls, experiment: Experiment, told: Mapping[str, Any]) -> Job:
        """A job from the :data:`FIELDS` that a dry run tells of it."""
        log, benchmark = (_path(next(iter(told[name]), "")) for name in ("log", "benchmark"))
        rule, name = rule_of(told["rule_name"], log), told["rule_name"]
        if rule not in RULES or f"{experiment.results}/logs/{rule}" not in log:
            rule = f"{name} (not of this workflow)" if name in RULES else name
        outputs, inputs = (tuple(map(_path, told[name])) for name in ("output", "input"))
        return cls(experiment, rule, told["wildcards"], outputs, inputs, log, benchmark, told["reason"])

    @functools.cached_property
    def spec(self) -> str:
        """What Snakemake compares; "" for a rule that is not ours."""
        return spec_of(self.experiment, self.rule, self.wildcards) if self.rule in RULES else ""

    @property
    def params(self) -> dict[str, Any]:
        """The same as values."""
        return json.loads(self.spec or "{}")

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Those of its set, or the one that it times."""
        return params.cells_of(self.experiment, self.wildcards) if self.rule in RULES else ()

    @property
    def name(self) -> str:
        """The rule and its wildcards, as logs and benchmarks are named: ``translate/en-zh.llada-8b.seed1.matrix``."""
        return name_of(self.rule, self.wildcards)


def spec_of(experiment: Experiment, rule: str, wildcards: Mapping[str, str]) -> str:
    """What the numbers of a job depend on, as Snakemake compares it."""
    return tables.spec(experiment) if rule in SHOWING else params.spec_of(experiment, rule, wildcards)


def _path(told: str) -> str:
    """A path without what Snakemake says of it: ``x.csv (send to storage)``."""
    return re.sub(r" \([a-z, ]+\)$", "", told) if told.endswith(")") else told


def root_of(path: str, results: str) -> str:
    """The folder of ``results`` as a path in it calls it: a module may have it below a prefix."""
    return path.rpartition(f"{results}/")[0] + results


class Jobs:
    """Jobs of a config, each after those that it reads; ``by_output`` has each by every file that it writes."""

    def __init__(self, experiment: Experiment, listed: Iterable[Job]) -> None:
        self.experiment, listed = experiment, list(listed)
        self.by_output = {path: job for job in listed for path in job.outputs}
        depths: dict[Job, int] = {}
        for job in self.behind(listed):
            depths[job] = 1 + max((depths[read] for read in self.read_by(job)), default=0)
        self.all = sorted(listed, key=lambda job: (depths[job], job.outputs))

    @functools.cached_property
    def root(self) -> str:
        """The folder of results, which is below the prefix of a module."""
        results = self.experiment.results
        return next((root_of(job.log, results) for job in self.all if job.spec), results)

    def read_by(self, job: Job) -> list[Job]:
        """The jobs whose files a job reads."""
        return list(dict.fromkeys(filter(None, map(self.by_output.get, job.inputs))))

    def behind(self, wanted: Iterable[Job]) -> list[Job]:
        """These jobs and all whose files they need, each after those that it reads."""
        placed: dict[Job, None] = {}

        def place(job: Job) -> None:
            if job not in placed:
                for read in self.read_by(job):
                    place(read)
                placed[job] = None

        for job in wanted:
            place(job)
        return list(placed)


def require_snakefile(otherwise: str) -> None:
    """Raise InputError where Snakemake would not find a workflow; ``otherwise`` is what else can be done."""
    if not any(Path(place).is_file() for place in ("Snakefile", "workflow/Snakefile")):
        raise InputError("Snakefile", "not in this folder", f"Go to the root of the repository, or {otherwise}.")


def listed(
    experiment: Experiment | None,
    configfiles: Sequence[str] = (),
    snakefile: str | None = None,
    all_jobs: bool = False,
) -> Jobs:
    """The jobs of `rule all` that have to run, as a dry run lists them; or ``all_jobs``, whether they have to or not.

    ``experiment`` is the config of ``configfiles``; None: as the workflow itself has it, which may be a module of
    another one. Ends this process with Snakemake's words where the dry run fails.
    """
    if not snakefile:
        require_snakefile("name the file of a workflow by --snakefile FILE")
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--logger", "entropy-valley"]
    command += ["--forceall"] * all_jobs
    if snakefile:
        command += ["--snakefile", snakefile]
    command += ["--configfile", *configfiles] * bool(configfiles)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "jobs.json")
        variables = {**os.environ, JOBS: str(out)}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if done.returncode or not out.is_file():
            print(done.stdout, done.stderr, sep="", file=sys.stderr)
            sys.exit(done.returncode or 1)
        told = json.loads(out.read_bytes())
    if experiment is None:
        experiment = load_merged(told["config"], further=tables.problems)
    return Jobs(experiment, (Job.of(experiment, one) for one in told["jobs"]))


def write(out: Path, told: Iterable[Mapping[str, Any]], config: Mapping[str, Any]) -> None:
    """Write what a dry run tells of its jobs, with the config of its workflow, for :func:`listed`."""
    # Not sorted: wildcards stay in the order of their pattern, which names of logs have, too.
    out.write_text(json.dumps({"config": config, "jobs": list(told)}), encoding="utf-8")


def told_by(record: logging.LogRecord) -> dict[str, Any]:
    """What a dry run tells of a job, as plain values."""
    told = {name: getattr(record, name) for name in FIELDS}
    files = {name: list(told[name] or ()) for name in ("input", "output", "log")}
    benchmark = [told["benchmark"]] if told["benchmark"] else []
    return told | files | {"benchmark": benchmark, "wildcards": dict(told["wildcards"])}


# --- Finished jobs, by their benchmarks.

_RUN = r"(?P<direction>[^.]+)\.(?P<backbone>.+?)\.seed(?P<seed>\d[^.]*)"  # names may have dots, such as llada-1.5
_BENCHMARKS = (  # of rules that run a model
    r"(?P<rule>pretrain)/(?P<backbone>.+)\.seed(?P<seed>\d+)",
    rf"(?P<rule>train|diagnose)/{_RUN}",
    rf"(?P<rule>translate|score)/{_RUN}\.(?P<set>.+)",
    rf"(?P<rule>shard)/{_RUN}\.(?P<set>.+)\.(?P<shard>\d+of\d+)",
    rf"(?P<rule>latency)/{_RUN}\.(?P<testset>[^.]+)\.(?P<method>.+)\.(?P<order>[^.]+)\.T(?P<steps>\d+)",
)


def finished(experiment: Experiment) -> dict[Job, float]:
    """The seconds of each finished job that has run a model and that the config still has; of a training those of all
    its attempts, which it keeps itself."""
    jobs: dict[Job, float] = {}
    for name, seconds in finished_seconds(Path(experiment.results, "benchmarks")).items():
        matches = filter(None, (re.fullmatch(pattern, name) for pattern in _BENCHMARKS))
        for wildcards in (match.groupdict() for match in matches):
            job = Job(experiment, wildcards.pop("rule"), wildcards)
            with contextlib.suppress(InputError, LookupError):  # of an earlier config
                if job.spec and (job.cells or "set" not in wildcards):
                    jobs[job] = max(seconds, _trained(job)) if job.rule == "train" else seconds
    return jobs


def _trained(job: Job) -> float:
    """The seconds of a finished training from its first attempt on; 0 if it has not written them."""
    folder = paths.training_logs(job.experiment, params.run_of(job.wildcards))
    run = Path(folder, "run.json")
    return float(files.read_json(run)["seconds"]) if run.is_file() else 0.0
