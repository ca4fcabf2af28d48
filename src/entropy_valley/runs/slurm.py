"""Whether a SLURM cluster grants what the jobs of a config will request: `entropy-valley check --profile slurm`.

The requests are read from the profile, those of every attempt. `scontrol` and `sacctmgr` say which limits each one
breaks, and `sbatch --test-only` whether anything else is wrong; nothing is submitted. If one of the first two does not
answer, its limits are not checked.
"""

from __future__ import annotations

import getpass
import math
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from entropy_valley.analysis.job_costs import gpus
from entropy_valley.checking.line import Check, CheckError
from entropy_valley.errors import InputError, listed
from entropy_valley.experiment import Experiment
from entropy_valley.runs.inventory import Inventory

SECONDS = 60  # that a command of SLURM has to answer
SLOWEST = 180  # most seconds between two looks of Snakemake at its jobs
OTHERS = "all other rules"  # those that the profile does not name
FLAGS = {"slurm_account": "--account", "constraint": "--constraint", "qos": "--qos", "nodes": "--nodes"}
# What of the profile to change, by what sbatch says.
REMEDIES = {
    "account": "correct slurm_account",
    "partition": "correct the file of partitions",
    "feature": "correct constraint",
    "qos": "correct qos",
    "time limit": "lower runtime",
    "node configuration": "lower mem_mb or set-threads, correct gpu_model, or lower training.processes in the config",
}


@dataclass
class Request:
    """What a job requests in an attempt: ``asked`` by the names of Snakemake's resources. ``partition`` is None if the
    profile has none for it."""

    attempt: int
    partition: str | None
    asked: dict[str, Any]

    def __str__(self) -> str:
        model = self.asked.get("gpu_model") or ""
        gpus = [f"{self.asked['gpu']} GPU {model}".rstrip()] if self.asked["gpu"] else []
        rest = (f"{self.asked['threads']} CPU", f"{self.asked['mem_mb']} MB", f"{self.asked['runtime']} minutes")
        return f"{self.partition}: {', '.join([*gpus, *rest])}"

    def command(self) -> list[str]:
        """The options that the SLURM plugin of Snakemake would submit it with."""
        asked = self.asked
        command = ["sbatch", "--test-only", f"--partition={self.partition}", f"--time={asked['runtime']}"]
        command += [f"--mem={asked['mem_mb']}", f"--cpus-per-task={asked['threads']}"]
        command += [f"{flag}={asked[name]}" for name, flag in FLAGS.items() if asked.get(name)]
        if asked["gpu"]:
            model, tasks = asked.get("gpu_model"), asked.get("tasks_per_gpu", 1)
            command += [f"--gpus={f'{model}:' if model else ''}{asked['gpu']}"]
            command += [f"--ntasks-per-gpu={tasks}"] if tasks else []
        else:
            command.append("--ntasks=1")
        return [*command, *shlex.split(asked.get("slurm_extra") or ""), "--wrap=true"]


class Profile:
    """A profile of Snakemake by its name, as Snakemake finds it, or by its folder."""

    def __init__(self, name: str) -> None:
        files = [Path(folder, "config.yaml") for folder in (name, f"profiles/{name}")]
        self.path = next((path for path in files if path.is_file()), None)
        if self.path is None:
            raise InputError(name, "is no profile", "Name a folder with a config.yaml, as profiles/slurm.")
        self.settings = yaml.safe_load(self.path.read_text(encoding="utf-8"))
        if self.settings.get("executor") != "slurm":
            raise InputError(self.path, "does not submit to SLURM", "Name a profile with `executor: slurm`.")
        for key in ("default-resources", "set-resources", "set-threads"):
            if not isinstance(self.settings.get(key, {}), dict):
                raise InputError(f"{self.path}: {key}", "is no mapping", "Write it as profiles/slurm has it.")
        self.partitions = Path(self.settings.get("slurm-partition-config", ""))
        try:
            self.limits = yaml.safe_load(self.partitions.read_text(encoding="utf-8"))["partitions"]
        except (OSError, KeyError, TypeError) as error:
            remedy = "Name a file like profiles/slurm/partitions.yaml."
            raise InputError(f"{self.path}: slurm-partition-config", f"{error}", remedy) from None

    def requests(self, experiment: Experiment) -> dict[str, list[Request]]:
        """What the jobs of a config request, one attempt after the other, by their rules. Rules that request the same
        are together; so are all that neither the profile names nor use a GPU."""
        rules = dict.fromkeys(job.rule for job in Inventory(experiment).all())
        on_gpu = gpus(experiment.device, experiment.training.processes)
        if experiment.decoding.shards > 1:
            rules["shard"] = None
            on_gpu.pop("translate", None)
        if not experiment.corpus.on_cluster:
            rules.pop("corpus", None)
        own = {*self.settings.get("set-resources", {}), *self.settings.get("set-threads", {}), *on_gpu}
        together: dict[str, tuple[list[str], list[Request]]] = {}
        for rule in [*(rule for rule in rules if rule in own), OTHERS]:
            attempts = list(self._attempts(rule, on_gpu.get(rule, 0)))
            together.setdefault(repr(attempts), ([], attempts))[0].append(rule)
        return {", ".join(names): attempts for names, attempts in together.values()}

    def _attempts(self, rule: str, gpus: int) -> Iterator[Request]:
        """What a rule requests in its first attempt, and in each that requests something else than the one before."""
        given = {"mem_mb": 1000, "runtime": 0, "gpu": gpus, "threads": self._of("set-threads", rule, max(gpus, 1))}
        given |= self.settings.get("default-resources", {}) | self._of("set-resources", rule, {})
        last = None
        for attempt in range(1, 2 + max(self.settings.get(key, 0) for key in ("retries", "preemptible-retries"))):
            asked = {key: self._evaluated(f"{rule}: {key}", value, attempt) for key, value in given.items()}
            for key in ("gpu", "threads", "mem_mb", "runtime"):
                if not isinstance(asked[key], (int, float)):
                    remedy = "Write a number (for runtime of minutes), or an expression with `attempt`."
                    raise InputError(f"{self.path}: {rule}: {key}", f"{asked[key]} is no number", remedy)
                asked[key] = int(asked[key])
            if asked != last:
                yield Request(attempt, asked.get("slurm_partition") or self._partition(asked), asked)
            last = asked

    def _of(self, key: str, rule: str, default: Any) -> Any:
        return self.settings.get(key, {}).get(rule, default)

    def _evaluated(self, place: str, value: Any, attempt: int) -> Any:
        """As Snakemake evaluates a resource: an expression, or else a text."""
        if not isinstance(value, str):
            return value
        try:
            evaluated = eval(value, {"attempt": attempt})  # the user's own file
            return evaluated if isinstance(evaluated, (int, float, str)) else value
        except (NameError, SyntaxError):
            return value
        except Exception as error:
            raise InputError(f"{self.path}: {place}", f"{value}: {error}", "Correct this expression.") from None

    def _partition(self, asked: dict[str, Any]) -> str | None:
        """The partition whose limits a request fills most, as the SLURM plugin chooses; None if none takes it."""
        amounts = {**asked, "cpus_per_task": asked["threads"]}
        best, most = None, 0.0
        for name, given in self.limits.items():
            limits = {"gpu": 0} | {key.removeprefix("max_"): limit(value) for key, value in given.items()}
            pairs = [(amounts[key], limits[key]) for key in amounts if key in limits]
            share = sum(amount / maximum for amount, maximum in pairs if maximum)
            if all(amount <= maximum for amount, maximum in pairs) and share > most:
                best, most = name, share
        return best


class Cluster:
    """What SLURM says of itself; None or nothing where a command does not answer."""

    def __init__(self) -> None:
        text, user = answer("scontrol", "-o", "show", "partition"), getpass.getuser()
        lines = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in (text or "").splitlines()]
        self.partitions = {fields["PartitionName"]: fields for fields in lines if fields}
        self.settings = dict(re.findall(r"^(\w+) *= (.*)$", answer("scontrol", "show", "config") or "", re.M))
        accounts = answer("sacctmgr", "-nP", "show", "associations", f"user={user}", "format=Account")
        self.accounts = None if accounts is None else sorted({*accounts.lower().split()})
        qos = answer("sacctmgr", "-nP", "show", "qos", "format=Name,MaxWall,MaxTRES")
        self.qos = None if qos is None else {row[0]: row[1:] for row in (line.split("|") for line in qos.splitlines())}
        self.sacct = answer("sacct", "-nPX", "--format=JobIdRaw", "--starttime=now") is not None

    def problems(self, request: Request, profile: Profile) -> Iterator[str]:
        """What the cluster refuses or leaves waiting for ever, each with what to change."""
        account, qos = str(request.asked.get("slurm_account", "")).lower(), request.asked.get("qos")
        if account and self.accounts is None:
            yield "sacctmgr does not answer, so Snakemake cannot look up the account: remove slurm_account"
        elif account and account not in self.accounts:
            yield f"you have no account {account}, but {listed(self.accounts)}: correct slurm_account"
        if qos and self.qos is not None and qos not in self.qos:
            yield f"there is no QOS {qos}, but {listed(sorted(self.qos))}: correct qos"
        if request.partition is None:
            yield f"no partition of {profile.partitions} takes it: raise a limit there, or request less"
            return
        if self.partitions and request.partition not in self.partitions:
            there = listed(sorted(self.partitions))
            yield f"there is no partition {request.partition}, but {there}: correct {profile.partitions}"
            return
        partition = self.partitions.get(request.partition, {})
        if (state := partition.get("State", "UP")) != "UP":
            yield f"partition {request.partition} is {state}: wait, or name another in {profile.partitions}"
        tiers = [int(one.get("PriorityTier", 1)) for one in (partition, *self.partitions.values())]
        by_partition = self.settings.get("PreemptType") == "preempt/partition_prio"
        if by_partition and partition.get("PreemptMode") == "CANCEL" and tiers[0] < max(tiers):
            yield "it cancels preempted jobs, and Snakemake waits for them for ever: ask for PreemptMode=REQUEUE"
        wall, tres = (self.qos or {}).get(qos, ("", ""))
        for whose, minutes in ((f"partition {request.partition}", partition.get("MaxTime", "")), (f"QOS {qos}", wall)):
            if request.asked["runtime"] > limit(minutes):
                yield f"{whose} grants {limit(minutes):.0f} minutes: lower runtime; training and translating resume"
        granted = dict(part.split("=", 1) for part in tres.split(",") if part)
        for name, key in (("gres/gpu", "gpu"), ("cpu", "threads"), ("mem", "mem_mb")):
            if request.asked[key] > limit(granted.get(name, "")):
                yield f"QOS {qos} grants {name}={granted[name]}: lower {key}, or take another qos"

    def refused(self, request: Request) -> Iterator[str]:
        """Why sbatch would refuse it; of nodes, how the partition's are."""
        try:
            done = subprocess.run(request.command(), capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError("sbatch", f"{error}", "Run this on a login node of the cluster.") from None
        said = " ".join(done.stderr.split())
        if done.returncode and "busy" not in said:
            remedy = next((text for part, text in REMEDIES.items() if part in said.lower()), "correct the profile")
            yield f"sbatch says `{said}`: {remedy}"
            there = answer("sinfo", "-hp", str(request.partition), "-o", "%D: %c CPU, %m MB, %G, %f, %T")
            if there and "node" in said:
                yield f"the nodes of the partition are {', and '.join(there.splitlines())}"

    def watched(self, command: str, first: int) -> str:
        """How Snakemake watches its jobs: by ``command``, ``first`` seconds after they were submitted."""
        longest, kept = max(3 * first, SLOWEST), self.settings.get("MinJobAge", "300 sec")
        if command == "sacct" and not self.sacct:
            raise CheckError("sacct does not answer: set `slurm-status-command: squeue`")
        if command == "squeue" and int(kept.split()[0]) < longest:
            remedy = "set `slurm-status-command: sacct`" if self.sacct else f"ask your site for {longest} s"
            raise CheckError(f"squeue forgets a finished job after {kept} (MinJobAge): {remedy}")
        return f"by {command}"


def checks(experiment: Experiment, name: str) -> Iterator[tuple[str, Check]]:
    """The checks of a config and a profile, for :func:`entropy_valley.checking.line.run`."""
    profile, cluster = Profile(name), Cluster()
    command = profile.settings.get("slurm-status-command", "sacct")
    first = profile.settings.get("slurm-init-seconds-before-status-checks", 40)
    yield "watching jobs", partial(cluster.watched, command, first)
    for rules, attempts in profile.requests(experiment).items():
        yield rules, partial(granted, cluster, attempts, profile)


def granted(cluster: Cluster, attempts: Sequence[Request], profile: Profile) -> str:
    """What is requested at first and at last; raises CheckError with all that is wrong with the first bad attempt."""
    for request in attempts:
        if found := list(cluster.problems(request, profile)) or list(cluster.refused(request)):
            which = f"attempt {request.attempt}: " if request.attempt > 1 else ""
            raise CheckError(f"{which}{request}. {'; '.join(found)} ({profile.path})")
    last = f"; attempt {attempts[-1].attempt}: {attempts[-1]}" if len(attempts) > 1 else ""
    return f"{attempts[0]}{last}"


def answer(*command: str) -> str | None:
    """What a command prints; None if it is not there, fails, or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


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
