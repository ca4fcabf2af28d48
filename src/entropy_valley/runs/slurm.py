"""Whether a SLURM cluster grants what the jobs of a config will request: `entropy-valley check --profile slurm`; and
whether it still has jobs of an earlier run.

The requests are read from the profile, those of every attempt, and `sbatch --test-only` says whether SLURM takes them;
nothing is submitted.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from entropy_valley import machine
from entropy_valley.checking.checks import Check, CheckError
from entropy_valley.config import Experiment
from entropy_valley.errors import InputError
from entropy_valley.runs import plan
from entropy_valley.runs.jobs import Job, Jobs, listed
from entropy_valley.stats.job_costs import MEMORY

SECONDS = 60  # that a command of SLURM has to answer
SLOWEST = 180  # most seconds between two looks of Snakemake at its jobs
REMEDY = "Run this on a login node of the cluster, while SLURM's controller is up (`scontrol ping`)."
OTHERS = "all other rules"  # those that the profile does not name
# A line of `lfs quota` or `quota`: blocks of 1 KiB with soft and hard limit, time of grace, files in the same way.
QUOTA = re.compile(r"(?<!\S)(\d+)\*?\s+(\d+)\s+(\d+)\s+(?:\S*[^\d\s]\S*\s+)?(\d+)\*?\s+(\d+)\s+(\d+)")
NUMBERS = ("gpu", "threads", "mem_mb", "runtime")  # of a request, by the names of Snakemake's resources
# How the states of a node begin in which it takes no job now.
AWAY = ("down", "drain", "fail", "inval", "maint", "reboot", "reserved", "unknown")
FLAGS = {"slurm_account": "--account", "constraint": "--constraint", "qos": "--qos", "nodes": "--nodes"}
# What of the profile to change, by what sbatch says.
REMEDIES = {
    "account": "correct slurm_account",
    "partition": "correct the file of partitions",
    "feature": "correct constraint",
    "qos": "correct qos",
    "time limit": "lower max_runtime in the config, or runtime of rules without a GPU",
    "node configuration": "lower mem_mb or set-threads, correct gpu_model, or lower training.processes in the config",
}


@dataclass
class SlurmRequest:
    """What a job requests in an attempt, by the names of Snakemake's resources. ``partition`` is None if the profile
    has none for it."""

    attempt: int
    partition: str | None
    resources: dict[str, Any]

    def __str__(self) -> str:
        given = self.resources
        gpus = [f"{given['gpu']} GPU {given.get('gpu_model') or ''}".rstrip()] if given["gpu"] else []
        rest = (f"{given['threads']} CPU", f"{given['mem_mb']} MB", f"{given['runtime']} minutes")
        return f"{self.partition}: {', '.join([*gpus, *rest])}"

    def command(self) -> list[str]:
        """The options that the SLURM plugin of Snakemake would submit it with."""
        given = self.resources
        command = ["sbatch", "--test-only", f"--partition={self.partition}", f"--time={given['runtime']}"]
        command += [f"--mem={given['mem_mb']}", f"--cpus-per-task={given['threads']}"]
        command += [f"{flag}={given[name]}" for name, flag in FLAGS.items() if given.get(name)]
        if given["gpu"]:
            model, tasks = given.get("gpu_model"), given.get("tasks_per_gpu", 1)
            command += [f"--gpus={f'{model}:' if model else ''}{given['gpu']}"]
            command += [f"--ntasks-per-gpu={tasks}"] if tasks else []
        else:
            command.append("--ntasks=1")
        return [*command, *shlex.split(given.get("slurm_extra") or ""), "--wrap=true"]

    def gpus(self, gres: str) -> int:
        """How many GPUs of the requested model a node has, by its generic resources as sinfo prints them."""
        found = re.findall(r"gpu(?::([^:,(]+))?:(\d+)", gres)
        return sum(int(count) for model, count in found if self.resources.get("gpu_model") in (None, model))

    def fits(self, cpus: str, memory: str, gres: str, features: str) -> bool:
        """Whether a node has all of it, by its configuration as sinfo prints it (memory in MB)."""
        given = self.resources
        tasks = given["gpu"] * given.get("tasks_per_gpu", 1) or 1
        either, present = str(given.get("constraint") or "").split("|"), {"", *features.split(",")}
        return (
            tasks * given["threads"] <= int(cpus)
            and given["mem_mb"] <= int(memory)
            and given["gpu"] <= self.gpus(gres)
            and any({*re.split("[&,]", every)} <= present for every in either)
        )


class Profile:
    """A profile of Snakemake by its name, as Snakemake finds it, or by its folder."""

    def __init__(self, name: str) -> None:
        files = [Path(folder, "config.yaml") for folder in (f"profiles/{name}", name)]
        self.path = next((path for path in files if path.is_file()), None)
        if self.path is None:
            raise InputError(name, "is not a profile", "Name a folder with a config.yaml, as profiles/slurm.")
        self.settings = yaml.safe_load(self.path.read_text(encoding="utf-8"))
        if self.settings.get("executor") != "slurm":
            raise InputError(self.path, "does not submit to SLURM", "Name a profile with `executor: slurm`.")
        self.partitions = Path(self.settings.get("slurm-partition-config", ""))
        try:
            self.limits = yaml.safe_load(self.partitions.read_text(encoding="utf-8"))["partitions"]
        except (OSError, KeyError, TypeError) as error:
            remedy = "Name a file like profiles/slurm/partitions.yaml."
            raise InputError(f"{self.path}: slurm-partition-config", f"{error}", remedy) from None

    def requests(self, jobs: Jobs) -> dict[str, list[SlurmRequest]]:
        """What jobs request, one attempt after the other, by their rules. Rules of a group share an allocation. Rules
        that request the same are together; so are all that neither the profile names nor use a GPU."""
        rules: dict[str, Job] = {}  # the largest job of each
        for job in sorted(jobs.all, key=_size):
            rules[job.rule] = job
        own = {*self.settings.get("set-resources", {}), *self.settings.get("set-threads", {}), *MEMORY}
        named = {rule: job for rule, job in rules.items() if rule in own}
        groups: dict[str, list[Job]] = {}
        for rule, job in [*named.items(), (OTHERS, Job(jobs.experiment, OTHERS, {}))]:
            groups.setdefault(self.settings.get("groups", {}).get(rule, rule), []).append(job)
        together: dict[str, tuple[list[str], list[SlurmRequest]]] = {}
        for group in groups.values():
            attempts = list(self._attempts(group))
            together.setdefault(repr(attempts), ([], attempts))[0].extend(job.rule for job in group)
        return {", ".join(names): attempts for names, attempts in together.values()}

    def _attempts(self, group: Sequence[Job]) -> Iterator[SlurmRequest]:
        """What jobs that run one after the other in an allocation request in their first attempt, and in each that
        requests something else than the one before."""
        last = None
        for attempt in range(1, 2 + self.settings.get("retries", 0)):
            first, *others = (self._values(job, attempt) for job in group)
            for values in others:
                minutes = first["runtime"] + values["runtime"]
                first |= {key: max(first[key], values[key]) for key in NUMBERS} | {"runtime": minutes}
            if first != last:
                yield SlurmRequest(attempt, first.get("slurm_partition") or self._partition(first), first)
            last = first

    def _values(self, job: Job, attempt: int) -> dict[str, Any]:
        """The resources of a job in an attempt, by their names."""
        rule, experiment = job.rule, job.experiment
        gpus, minutes = _size(job)
        usual = plan.cores(rule if gpus else "", experiment.training.processes)
        threads = self.settings.get("set-threads", {}).get(rule, usual)
        given = {"mem_mb": 1000, "runtime": 0, "gpu": gpus, "threads": threads}
        given |= self.settings.get("default-resources", {})
        in_rule = {}
        if rule in MEMORY:
            used = rule if experiment.device == "cuda" else ""
            later = min(plan.longest(experiment, rule), minutes + plan.SECOND * (attempt - 1))
            in_rule["runtime"] = later if used else minutes
            in_rule["mem_mb"] = plan.memory(used, attempt, experiment.training.processes)
        own = self.settings.get("set-resources", {}).get(rule, {})
        values = {key: _evaluated(value, attempt) for key, value in (given | in_rule | own).items()}
        for key in NUMBERS:
            if not isinstance(values[key], (int, float)):
                remedy = "Write a number (for runtime of minutes), or an expression with `attempt`."
                raise InputError(f"{self.path}: {rule}: {key}", f"{values[key]} is not a number", remedy)
            values[key] = int(values[key])
        return values

    def _partition(self, values: dict[str, Any]) -> str | None:
        """The partition whose limits a request fills most, as the SLURM plugin chooses; None if none takes it."""
        amounts = {**values, "cpus_per_task": values["threads"]}
        best, most = None, 0.0
        for name, given in self.limits.items():
            limits = {"gpu": 0} | {key.removeprefix("max_"): limit(value) for key, value in given.items()}
            pairs = [(amounts[key], limits[key]) for key in amounts if key in limits]
            share = sum(amount / maximum for amount, maximum in pairs if maximum)
            if all(amount <= maximum for amount, maximum in pairs) and share > most:
                best, most = name, share
        return best


def _size(job: Job) -> tuple[int, int]:
    """The GPUs and minutes of a job."""
    return job.resources.get("gpu") or 0, job.resources.get("runtime") or plan.DEFAULT_MINUTES


def _evaluated(value: Any, attempt: int) -> Any:
    """As Snakemake evaluates a resource of the user's profile: an expression, or else a text."""
    try:
        return eval(value, {"attempt": attempt}) if isinstance(value, str) else value
    except (NameError, SyntaxError):
        return value


def checks(experiment: Experiment, configfiles: Sequence[str], name: str) -> Iterator[tuple[str, Check]]:
    """The checks of a config's jobs and a profile, for :func:`entropy_valley.checking.checks.run`.

    Raises InputError where no SLURM answers: then the profile is not to blame."""
    profile = Profile(name)
    if (done := _run("scontrol", "show", "config")).returncode:
        raise InputError("SLURM", f"does not answer: {done.stderr.strip()}", REMEDY)
    jobs = listed(experiment, configfiles)
    yield "watching jobs", partial(watched, profile, done.stdout)
    yield "quota", partial(room, jobs)
    for rules, attempts in profile.requests(jobs).items():
        yield rules, partial(granted, attempts, profile, experiment.max_runtime)


def watched(profile: Profile, config: str) -> str:
    """Snakemake can watch its jobs: a finished job must be known until it looks again, else it waits for ever.
    ``config`` is what ``scontrol show config`` prints."""
    command = profile.settings.get("slurm-status-command", "sacct")
    longest = max(3 * profile.settings.get("slurm-init-seconds-before-status-checks", 40), SLOWEST)
    if command == "sacct" and answer("sacct", "-nPX", "--format=JobIdRaw", "--starttime=now") is None:
        raise CheckError("sacct does not answer: set `slurm-status-command: squeue`")
    kept = re.search(r"^MinJobAge *= (\d+)", config, re.M)
    if command == "squeue" and kept and int(kept[1]) < longest:
        problem = f"squeue forgets a finished job after {kept[1]} s (MinJobAge)"
        raise CheckError(f"{problem}: set `slurm-status-command: sacct`, or ask your site for {longest} s")
    return f"by {command}"


def room(jobs: Jobs) -> str:
    """What the user's quotas leave for results and models suffices for the jobs that are not done."""
    experiment = jobs.experiment
    left = [job for job in jobs.all if not Path(job.outputs[0]).exists()]
    needed, count = sum(plan.Plan(experiment, left).disk.values()), plan.FILES * len(left)
    quotas = [one for folder in (experiment.results, experiment.models) if (one := quota(Path(folder)))]
    if not quotas:
        return "not known: neither `lfs quota` nor `quota` tells one"
    size, number = map(min, zip(*quotas, strict=True))
    wanted = f"{machine.amount(needed)} and {count:,} files are needed"
    if size < needed or number < count:
        short = f"{machine.amount(size)}" if size < needed else f"{number:,.0f} files"
        raise CheckError(f"{short} left, {wanted}: let links `results` and `models` lead to where there is room")
    return f"{wanted}, and are left"


def quota(folder: Path) -> tuple[float, float] | None:
    """Bytes and files that this user may still write into a folder, infinite for no limit; None where nothing tells."""
    folder = next(one for one in (folder.resolve(), *folder.resolve().parents) if one.is_dir())
    mount = next(one for one in (folder, *folder.parents) if one.is_mount())
    user = str(os.getuid())
    for command in (["lfs", "quota", "-q", "-u", user, str(folder)], ["quota", "-w", "-f", str(mount)]):
        try:
            found = QUOTA.search(_run(*command).stdout)
        except InputError:  # it is not there
            continue
        if found:
            blocks, soft, hard, files, soft_files, hard_files = map(int, found.groups())
            size, count = hard or soft or math.inf, hard_files or soft_files or math.inf
            return max(0, size - blocks) * 1024, max(0, count - files)
    return None


def granted(attempts: Sequence[SlurmRequest], profile: Profile, max_runtime: int) -> str:
    """What is requested at first and at last, and whether it will have to wait for nodes; raises CheckError for the
    first attempt that SLURM refuses."""
    for request in attempts:
        if problem := _problem(request, profile, max_runtime):
            which = f"attempt {request.attempt}: " if request.attempt > 1 else ""
            raise CheckError(f"{which}{request}. {problem} ({profile.path})")
    last = f"; attempt {attempts[-1].attempt}: {attempts[-1]}" if len(attempts) > 1 else ""
    away = sorted({state for request in attempts for state in _away(request)})
    waits = f"; its nodes are {' or '.join(away)} now: jobs will wait" if away else ""
    return f"{attempts[0]}{last}{waits}"


def _problem(request: SlurmRequest, profile: Profile, max_runtime: int) -> str:
    """Why SLURM refuses a request, or lets it wait for ever, and what to change; "" if it takes it."""
    if request.partition is None:
        return f"no partition of {profile.partitions} takes it: raise a limit there, or request less"
    done = _run(*request.command())
    message = " ".join(done.stderr.split())
    # sbatch itself would take a job for which all nodes are busy or away.
    if done.returncode and "busy" not in message and not ("not available" in message and _away(request)):
        if request.resources["gpu"] > (most := _gpus(request)) > 0:
            return f"a node of it has {most} GPUs: set `training: {{processes: {most}}}` in the config"
        remedies = (text for part, text in REMEDIES.items() if part in message.lower())
        return f"sbatch says `{message}`: {next(remedies, 'correct the profile, or ask your site')}"
    text = answer("scontrol", "-o", "show", "partition", request.partition) or ""
    partition = dict(re.findall(r"(\S+?)=(\S*)", text))
    if partition.get("State", "UP") != "UP":
        return f"partition {request.partition} is {partition['State']}: wait, or name another in {profile.partitions}"
    granted = limit(partition.get("MaxTime", ""))
    on_gpu = request.resources["gpu"]
    if (max_runtime if on_gpu else request.resources["runtime"]) > granted:  # such a job would wait for ever
        remedy = f"set `max_runtime: {granted:.0f}` in the config" if on_gpu else "lower runtime"
        return f"partition {request.partition} grants {partition['MaxTime']}: {remedy}"
    return ""


def _gpus(request: SlurmRequest) -> int:
    """The most GPUs that a node of the partition has, of the model that is requested; 0 if SLURM does not tell."""
    text = answer("sinfo", "--exact", "--noheader", f"--partition={request.partition}", "--format=%G") or ""
    return max((request.gpus(line) for line in text.splitlines()), default=0)


def _away(request: SlurmRequest) -> set[str]:
    """The states of the nodes that have all of a request, where each of them is drained, down or reserved now; none
    where one of them is not, or where there is no such node."""
    columns = "--format=%T|%c|%m|%G|%f"  # state, CPUs, memory, GPUs, features
    text = answer("sinfo", "--exact", "--noheader", f"--partition={request.partition}", columns) or ""
    nodes = (line.split("|") for line in text.splitlines())
    states = {state.rstrip("*") for state, *node in nodes if request.fits(*node)}
    return states if all(state.startswith(AWAY) for state in states) else set()


def require_empty_queue() -> None:
    """Raise InputError where jobs of an earlier run of this folder wait or run: a second job would wait for the first
    on idle GPUs, or compute the same again. Nothing is looked at without SLURM."""
    states = "--states=PENDING,RUNNING,SUSPENDED,CONFIGURING"
    lines = (answer("squeue", "--me", "--noheader", states, "--format=%j|%Z|%k") or "").splitlines()
    jobs = [one.split("|", 2) for one in lines if one.count("|") >= 2]
    folder = os.path.realpath(".")
    runs = [run for run, place, comment in jobs if comment.startswith("rule_") and os.path.realpath(place) == folder]
    if runs:
        cancel = " ".join(f"scancel --name={run};" for run in dict.fromkeys(runs)).rstrip(";")
        remedy = f"Wait for their end, and their results are taken. Or cancel them, and they resume later: {cancel}"
        raise InputError("SLURM", f"{len(runs)} jobs of an earlier run of this folder are in the queue", remedy)


def answer(*command: str) -> str | None:
    """What a command prints; None if it is not there, fails, or takes too long."""
    try:
        done = _run(*command)
    except InputError:
        return None
    return done.stdout if done.returncode == 0 else None


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    """A command of SLURM that has ended; raises InputError if it is not there, or takes too long."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(command[0], f"{error}", REMEDY) from None


def limit(text: object) -> float:
    """A limit as SLURM writes it: ``2-00:00:00`` in minutes, ``500G`` in MB, a number as it is; infinite for none."""
    text = str(text).upper()
    if ":" in text:
        days, _, clock = text.rpartition("-")
        hours, minutes, seconds = map(int, ["0", *clock.split(":")][-3:])
        return int(days or 0) * 1440 + hours * 60 + minutes + seconds / 60
    if number := re.fullmatch(r"([\d.]+)([KMGT]?)", text):
        return float(number[1]) * {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[number[2]]
    return math.inf
