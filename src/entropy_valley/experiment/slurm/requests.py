"""Whether a SLURM site will run what a job requests: account, partition, QOS, limits, GPUs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from entropy_valley.errors import InputError, listed
from entropy_valley.experiment.slurm.site import Association, Node, Partition, Quality, Site

PROFILE = "profiles/slurm/config.yaml"
LIMITS = "profiles/slurm/partitions.yaml"


@dataclass(frozen=True)
class Request:
    """What a job asks SLURM for in an attempt. ``rule`` names it, for a group all its rules. ``partition`` is None if
    none of those in the profile takes it, "" if unknown. ``minutes`` and ``mem_mb`` are 0 if unset."""

    rule: str
    partition: str | None
    minutes: float = 0
    mem_mb: float = 0
    cpus: int = 1
    gpus: int = 0
    gpu_model: str = ""
    constraint: str = ""
    qos: str = ""
    account: str = ""
    attempt: int = 1
    group: bool = False

    @property
    def place(self) -> str:
        """Where it comes from, for messages."""
        attempt = f", attempt {self.attempt}" if self.attempt > 1 else ""
        return f"{'group' if self.group else 'rule'} {self.rule}{attempt}"

    @property
    def wanted(self) -> str:
        """All of it in a line."""
        model = f" {self.gpu_model}" if self.gpu_model else ""
        parts = [
            *([f"{self.gpus}{model} GPU{'s' * (self.gpus > 1)}"] if self.gpus else []),
            f"{self.cpus} CPU{'s' * (self.cpus > 1)}",
            f"{self.mem_mb:.0f} MB",
            f"{self.minutes:.0f} minutes",
        ]
        return ", ".join(parts)


def problems(site: Site, request: Request) -> Iterator[InputError]:
    """What of a request the site will refuse, or leave waiting for ever."""
    yield from _account(site, request)
    if request.gpu_model and not request.gpus:
        yield InputError(
            request.place, f"gpu_model {request.gpu_model}, but no GPU", f"Remove gpu_model for it in {PROFILE}."
        )
    if request.partition is None:
        problem = f"requests {request.wanted}: no partition of {LIMITS} takes that"
        yield InputError(request.place, problem, f"Correct the limits there, or request less in {PROFILE}.")
        return
    if site.partitions is None or not request.partition:
        return
    if request.partition not in site.partitions:
        problem = f"the cluster has no partition {request.partition}; it has {listed(sorted(site.partitions))}"
        yield InputError(LIMITS, problem, "Write the names of your partitions there.")
        return
    partition = site.partitions[request.partition]
    yield from _partition(partition, request)
    yield from _qos(site, partition, request)
    yield from _limits(site, partition, request)
    yield from _nodes(partition, request)
    yield from _preemption(site, partition, request)


def _account(site: Site, request: Request) -> Iterator[InputError]:
    """Only an account of the user's is accepted; SLURM keeps names in lower case."""
    known = {one.account.lower() for one in site.associations or ()}
    for account in re.split(r"[,\s]+", request.account):
        if account and known and account.lower() not in known:
            problem = f"{site.user} has no account {account}; there is {listed(sorted(known))}"
            yield InputError("slurm_account", problem, f"Set one of these in {PROFILE}, under default-resources.")


def _partition(partition: Partition, request: Request) -> Iterator[InputError]:
    """A partition that takes no jobs, or none of this account."""
    if partition.state != "UP":
        problem = f"partition {partition.name} is in state {partition.state}"
        yield InputError(request.place, problem, f"Wait until it is up, or name another in {LIMITS}.")
    if request.account and not _permits(partition, "accounts", request.account):
        problem = f"partition {partition.name} does not admit account {request.account}"
        yield InputError(request.place, problem, f"Name another partition in {LIMITS}, or another account.")


def _permits(partition: Partition, kind: str, name: str) -> bool:
    allowed, denied = partition.allowed.get(kind), partition.denied.get(kind, frozenset())
    return (allowed is None or name in allowed) and name not in denied


def _qos(site: Site, partition: Partition, request: Request) -> Iterator[InputError]:
    """A QOS that is not there, that the account may not use, or that the partition does not admit."""
    if not request.qos or site.qualities is None:
        return
    granted = {name for one in _associations(site, request) for name in one.qos}
    remedy = f"Set another one in {PROFILE}, or none."
    if request.qos not in site.qualities:
        yield InputError("qos", f"no QOS {request.qos}; there is {listed(sorted(site.qualities))}", remedy)
    elif granted and request.qos not in granted and site.enforces("qos"):
        problem = f"{site.user} may not use QOS {request.qos}, but {listed(sorted(granted))}"
        yield InputError("qos", problem, remedy)
    elif not _permits(partition, "qos", request.qos):
        yield InputError("qos", f"partition {partition.name} does not admit QOS {request.qos}", remedy)


def _associations(site: Site, request: Request) -> list[Association]:
    """The user's associations that hold for a request."""
    account = request.account.lower()
    found = [one for one in site.associations or () if one.partition in ("", request.partition)]
    return [one for one in found if one.account.lower() == account] or found


def _qualities(site: Site, partition: Partition, request: Request) -> list[Quality]:
    """The QOS whose limits hold: that of the partition, and that of the job or else the user's default."""
    default = next((one.default_qos for one in _associations(site, request) if one.default_qos), "")
    names = dict.fromkeys([partition.qos, request.qos or default])
    return [site.qualities[name] for name in names if name in (site.qualities or {})]


def _limits(site: Site, partition: Partition, request: Request) -> Iterator[InputError]:
    """More than the partition or a QOS gives one job."""
    qualities = _qualities(site, partition, request)
    enforced = [one for one in qualities if site.enforces("limits")]
    longer = any("PartitionTimeLimit" in one.flags for one in enforced)
    by_partition = (f"partition {partition.name}", math.inf if longer else partition.minutes)
    for name, limit in [by_partition, *((f"QOS {one.name}", one.minutes) for one in enforced)]:
        if request.minutes > limit:
            problem = f"requests {request.minutes:.0f} minutes, {name} grants {limit:.0f}"
            yield InputError(request.place, problem, _shorter(request, limit))
    for one in enforced:
        asked = {"cpu": request.cpus, "mem": request.mem_mb, "gres/gpu": request.gpus}
        if request.gpu_model:
            asked[f"gres/gpu:{request.gpu_model.lower()}"] = request.gpus
        for resource, amount in asked.items():
            if amount > one.tres.get(resource, math.inf):
                problem = f"requests {resource}={amount:.0f}, QOS {one.name} grants a job {one.tres[resource]:.0f}"
                yield InputError(request.place, problem, _less(resource))


def _shorter(request: Request, limit: float) -> str:
    if request.group:
        return f"Lower runtime of its rules, or group-components, in {PROFILE}: the jobs of a group add up."
    return f"Set runtime: {limit:.0f} for it in {PROFILE}: training and inference resume in their next attempt."


def _less(resource: str) -> str:
    """How to request less of a resource."""
    key = {"mem": "mem_mb", "cpu": "set-threads"}.get(resource)
    return f"Lower {key} in {PROFILE}." if key else "Lower training.processes in the config, or use another partition."


def _nodes(partition: Partition, request: Request) -> Iterator[InputError]:
    """More than any node of the partition has, or a kind that none has."""
    nodes, where = partition.nodes, f"no node of partition {partition.name} has"
    if not nodes:
        return
    if request.gpu_model and not any(_gpus(node, request.gpu_model) for node in nodes):
        there = listed(sorted({kind or "GPUs without a type" for node in nodes for kind in node.gpus})) or "none"
        problem = f"{where} a GPU of type {request.gpu_model}; there is {there}"
        yield InputError("gpu_model", problem, f"Correct it in {PROFILE}, or remove it.")
        return
    simple = re.fullmatch(r"[\w.-]+", request.constraint)  # others have operators
    if simple and not any(request.constraint in node.features for node in nodes):
        there = listed(sorted({name for node in nodes for name in node.features})) or "none"
        problem = f"{where} the feature {request.constraint}; there is {there}"
        yield InputError("constraint", problem, f"Correct it in {PROFILE}, or remove it.")
        return
    most = {
        "gres/gpu": (request.gpus, max(_gpus(node, request.gpu_model) for node in nodes), "GPUs"),
        "cpu": (request.cpus, min(partition.cpus, max(node.cpus for node in nodes)), "CPUs"),
        "mem": (request.mem_mb, min(partition.mem_mb, max(node.mem_mb for node in nodes)), "MB"),
    }
    for resource, (amount, limit, unit) in most.items():
        if amount > limit:
            problem = f"requests {amount:.0f} {unit}, a node of partition {partition.name} grants at most {limit:.0f}"
            yield InputError(request.place, problem, _less(resource))


def _gpus(node: Node, model: str) -> int:
    """How many GPUs of a model a node has; of any for no model."""
    return node.gpus.get(model.lower(), 0) if model else sum(node.gpus.values())


def _preemption(site: Site, partition: Partition, request: Request) -> Iterator[InputError]:
    """A job that may be cancelled for another one: Snakemake would wait for it for ever."""
    settings = site.settings or {}
    kind, cluster = settings.get("PreemptType", "preempt/none"), settings.get("PreemptMode", "OFF")
    modes = []
    if kind == "preempt/partition_prio":
        nodes = {node.name for node in partition.nodes}
        higher = [one for one in site.partitions.values() if one.tier > partition.tier]
        if any(not nodes or not one.nodes or nodes & {node.name for node in one.nodes} for one in higher):
            modes.append((f"partition {partition.name}", partition.preempt_mode))
    if kind == "preempt/qos":
        stopped = {name for one in (site.qualities or {}).values() for name in one.preempts}
        modes += [
            (f"QOS {one.name}", cluster if one.preempt_mode.lower() == "cluster" else one.preempt_mode)
            for one in _qualities(site, partition, request)
            if one.name in stopped
        ]
    for name, mode in modes:
        if "CANCEL" in mode.upper():
            problem = "cancels jobs when others need their nodes (PreemptMode=CANCEL); Snakemake would wait for ever"
            remedy = f"It must be PreemptMode=REQUEUE: ask your site, or use another partition ({LIMITS}) or qos."
            yield InputError(name, problem, remedy)
