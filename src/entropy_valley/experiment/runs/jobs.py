"""The jobs of a workflow, as Snakemake tells them.

Which jobs there are, what each reads and writes, and why it runs, Snakemake decides alone: a dry run tells it through
our logger plugin, by Snakemake's public interface. Here a job gets what the config says of it by its wildcards: the
params that its numbers depend on, and the cells that it computes.
"""

import contextlib
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment, params, paths
from entropy_valley.experiment.config.load import load_merged
from entropy_valley.experiment.config.matrix import Cell
from entropy_valley.experiment.runs import JOBS, name_of, snapshot
from entropy_valley.experiment.runs.job import rule_of
from entropy_valley.experiment.stats.job_costs import finished_seconds


@dataclass(frozen=True, eq=False)
class Job:
    """One job. ``rule`` is that of our workflow, also where another one has it under a prefix; ``outputs`` are its
    files, the first of which has the header beside it. ``log`` and ``benchmark`` are "" for a rule without. ``reason``
    is why Snakemake runs it, in its words. ``spec`` is the param that Snakemake compares; "" for a rule that is not
    ours."""

    experiment: Experiment
    rule: str
    wildcards: Mapping[str, str]
    spec: str = ""
    outputs: Sequence[str] = ()
    inputs: Sequence[str] = ()
    log: str = ""
    benchmark: str = ""
    reason: str = ""

    @property
    def params(self) -> dict[str, Any]:
        """The spec as values."""
        return json.loads(self.spec or "{}")

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Those of its set, or the one that it times."""
        return params.cells_of(self.experiment, self.wildcards) if self.spec else ()

    @property
    def name(self) -> str:
        """The rule and its wildcards, as logs and benchmarks are named: ``translate/en-zh.llada-8b.seed1.matrix``."""
        return name_of(self.rule, self.wildcards)


def told_by(running: snapshot.Running, record: Any) -> dict[str, Any]:
    """What a dry run of a workflow tells of a job: the fields of :class:`Job` as plain values."""
    outputs, inputs, logs = (list(files or ()) for files in (record.output, record.input, record.log))
    name, wildcards, log, text = record.rule_name, dict(record.wildcards), next(iter(logs), ""), ""
    rule = rule_of(name, log)
    spec = running.spec_of(rule)
    # A workflow that has this one as a module may have a rule of the same name.
    if spec and f"{running.experiment.results}/logs/{rule}" in log:
        name, text = rule, spec(wildcards) if callable(spec) else spec
    return {
        "rule": name,
        "wildcards": wildcards,
        "spec": text,
        "outputs": outputs,
        "inputs": inputs,
        "log": log,
        "benchmark": record.benchmark or "",
        "reason": record.reason,
    }


class Jobs:
    """Jobs of a config, each after those that it reads; ``by_output`` has each by every file that it writes."""

    def __init__(self, experiment: Experiment, listed: Iterable[Job]) -> None:
        self.experiment, listed = experiment, list(listed)
        self.by_output = {path: job for job in listed for path in job.outputs}
        graph = {job: self.read_by(job) for job in sorted(listed, key=lambda job: tuple(job.outputs))}
        self.all = list(TopologicalSorter(graph).static_order())

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


def listed(configfiles: Sequence[str] = (), snakefile: str | None = None) -> Jobs:
    """The jobs of `rule all` that have to run, as a dry run lists them; ``snakefile``: of another workflow, which has
    this one as a module. Ends this process with Snakemake's words where the dry run fails."""
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--logger", "entropy-valley"]
    command += ["--snakefile", snakefile] if snakefile else []
    command += ["--configfile", *configfiles] if configfiles else []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "jobs.json")
        variables = {**os.environ, JOBS: str(out)}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if done.returncode or not out.is_file():
            print(done.stdout, done.stderr, sep="", file=sys.stderr)
            sys.exit(done.returncode or 1)
        return of_dry_run(out.read_bytes())


def of_dry_run(written: bytes) -> Jobs:
    """The jobs that a dry run wrote, see :func:`write`."""
    told = json.loads(written)
    experiment = load_merged(told["config"])
    return Jobs(experiment, [Job(experiment, **one) for one in told["jobs"]])


def write(out: Path, records: Iterable[Any]) -> None:
    """Write what a dry run tells of its jobs, with the config of its workflow."""
    if running := snapshot.running:
        content = {"config": running.config, "jobs": [told_by(running, record) for record in records]}
        # Not sorted: wildcards stay in the order of their pattern, which names of logs have, too.
        out.write_text(json.dumps(content), encoding="utf-8")


# --- Finished jobs, by their benchmarks.

# Names may have dots, such as llada-1.5.
_RUN = r"(?P<direction>[^.]+)\.(?P<backbone>.+?)\.seed(?P<seed>\d[^.]*)(\.(?P<set>.+?))?(\.(?P<shard>\d+of\d+))?"
_PRETRAINED = r"(?P<backbone>.+)\.seed(?P<seed>\d+)"
_SPECS: dict[str, Callable[..., str]] = {
    "pretrain": params.pretraining,
    "train": params.training,
    "diagnose": params.diagnostics,
    "translate": params.translation,
    "shard": params.translation,
    "score": params.scores,
}


def finished(experiment: Experiment) -> dict[Job, float]:
    """The seconds of each finished job that has run a model and that the config still has, but for those of `latency`;
    of a training those of all its attempts, which it keeps itself."""
    jobs: dict[Job, float] = {}
    for name, seconds in finished_seconds(Path(experiment.results, "benchmarks")).items():
        rule, _, rest = name.partition("/")
        match = re.fullmatch(_PRETRAINED if rule == "pretrain" else _RUN, rest)
        if rule not in _SPECS or not match:
            continue
        wildcards = {key: value for key, value in match.groupdict().items() if value}
        with contextlib.suppress(InputError, LookupError):  # of an earlier config
            job = Job(experiment, rule, wildcards, params.spec_of(experiment, _SPECS[rule], wildcards))
            if rule == "train":
                measured = Path(paths.training_logs(experiment, params.run_of(wildcards)), "run.json")
                seconds = max(seconds, files.read_json(measured)["seconds"] if measured.is_file() else 0)
            jobs[job] = seconds
    return jobs
