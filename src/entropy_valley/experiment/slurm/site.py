"""What a SLURM site says of itself: its partitions, nodes and settings, and the user's accounts and QOS.

Everything is looked up by SLURM's own commands. What they do not answer is None: nothing is checked by it.
"""

from __future__ import annotations

import getpass
import math
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

SECONDS = 20  # that a command has to answer
Ask = Callable[[Sequence[str]], str | None]
ASSOCIATIONS = ("Account", "Partition", "QOS", "DefaultQOS")
QUALITIES = ("Name", "MaxWall", "MaxTRES", "Preempt", "PreemptMode", "Flags")
NO_LIMIT = {"", "UNLIMITED", "INFINITE", "NONE", "N/A", "(NULL)"}


@dataclass(frozen=True)
class Node:
    """A node as a partition has it. ``gpus`` counts them by type, in lower case; untyped ones are of type ""."""

    name: str
    cpus: int
    mem_mb: int
    gpus: Mapping[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Partition:
    """A partition. ``minutes`` limits a job, ``mem_mb`` and ``cpus`` a job on a node; infinite if unset."""

    name: str
    state: str = "UP"
    default: bool = False
    minutes: float = math.inf
    mem_mb: float = math.inf
    cpus: float = math.inf
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)  # "accounts", "qos": absent if all
    denied: Mapping[str, frozenset[str]] = field(default_factory=dict)
    qos: str = ""
    tier: int = 1
    preempt_mode: str = "OFF"
    nodes: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Quality:
    """A QOS. ``tres`` are limits of a job by resource; ``preempts`` names the QOS whose jobs it may stop."""

    name: str
    minutes: float = math.inf
    tres: Mapping[str, float] = field(default_factory=dict)
    preempts: frozenset[str] = frozenset()
    preempt_mode: str = "cluster"
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Association:
    """An account that a user may name; in all partitions if ``partition`` is empty."""

    account: str
    partition: str = ""
    qos: frozenset[str] = frozenset()
    default_qos: str = ""


@dataclass(frozen=True)
class Site:
    """All that was found out. ``settings`` is ``scontrol show config``; ``finished_jobs``: sacct answers."""

    user: str
    settings: Mapping[str, str] | None = None
    partitions: Mapping[str, Partition] | None = None
    associations: tuple[Association, ...] | None = None
    qualities: Mapping[str, Quality] | None = None
    finished_jobs: bool = True

    def enforces(self, what: str) -> bool:
        """Whether accounting refuses what breaks "limits" or "qos"; True if unknown."""
        if self.settings is None:
            return True
        set_to = _names(self.settings.get("AccountingStorageEnforce", "").lower())
        implied = {"safe"} if what == "limits" else set()
        return not set_to.isdisjoint({what, "all", *implied})

    @property
    def default_partition(self) -> str | None:
        """The partition of jobs that name none; None if there is none or it is unknown."""
        return next((name for name, one in (self.partitions or {}).items() if one.default), None)


def answer(command: Sequence[str]) -> str | None:
    """What a command prints; None if it is not there, fails, or takes longer than SECONDS."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def look_up(ask: Ask = answer, user: str | None = None) -> Site:
    """Ask SLURM for all of it."""
    user = user or getpass.getuser()
    settings, nodes = _settings(ask(["scontrol", "show", "config"])), _nodes(ask(["sinfo", "-ahN", "-o", NODE_FORMAT]))
    accounts = ["sacctmgr", "-nP", "show", "associations", f"user={user}", f"format={','.join(ASSOCIATIONS)}"]
    qualities = ["sacctmgr", "-nP", "show", "qos", f"format={','.join(QUALITIES)}"]
    return Site(
        user,
        settings,
        _partitions(ask(["scontrol", "-o", "show", "partition"]), nodes),
        _associations(ask(accounts)),
        _qualities(ask(qualities)),
        ask(["sacct", "-nPX", "--format=JobIdRaw,State", "--starttime=now"]) is not None,
    )


NODE_FORMAT = "%R|%N|%c|%m|%G|%f"


def _settings(text: str | None) -> dict[str, str] | None:
    """Lines such as ``MinJobAge               = 300 sec``."""
    if text is None:
        return None
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _nodes(text: str | None) -> dict[str, list[Node]]:
    """The nodes of each partition, from lines of NODE_FORMAT."""
    found: dict[str, list[Node]] = {}
    for line in (text or "").splitlines():
        partition, name, cpus, mem_mb, gres, features = line.strip().split("|", 5)
        given = frozenset() if features == "(null)" else _names(features)
        node = Node(name, int(cpus), int(mem_mb.rstrip("+")), _gpus(gres), given)
        found.setdefault(partition, []).append(node)
    return found


def _gpus(gres: str) -> dict[str, int]:
    """``gpu:a100:8(S:0-7),gpu:v100:2,nvme:1`` is {"a100": 8, "v100": 2}; ``gpu:8`` is {"": 8}."""
    found: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", gres).split(","):
        name, *rest = part.split(":")
        count = int(rest.pop()) if rest and rest[-1].isdigit() else 1
        kind = rest[0].lower() if rest else ""
        if name == "gpu":
            found[kind] = found.get(kind, 0) + count
    return found


def _partitions(text: str | None, nodes: Mapping[str, Sequence[Node]]) -> dict[str, Partition] | None:
    """One partition a line, as ``scontrol -o`` prints them."""
    if text is None:
        return None
    lines = (dict(re.findall(r"(\S+?)=(\S*)", line)) for line in text.splitlines() if line.strip())
    return {said["PartitionName"]: _partition(said, nodes.get(said["PartitionName"], ())) for said in lines}


def _partition(said: Mapping[str, str], nodes: Sequence[Node]) -> Partition:
    lists = {
        word: {
            name: _names(said[key])
            for name, key in (("accounts", f"{word}Accounts"), ("qos", f"{word}Qos"))
            if said.get(key, "ALL") not in ("ALL", "")
        }
        for word in ("Allow", "Deny")
    }
    return Partition(
        said["PartitionName"],
        said.get("State", "UP"),
        said.get("Default") == "YES",
        minutes(said.get("MaxTime", "")),
        _limit(said.get("MaxMemPerNode", "")),
        _limit(said.get("MaxCPUsPerNode", "")),
        lists["Allow"],
        lists["Deny"],
        "" if said.get("QoS", "").upper() in NO_LIMIT else said["QoS"],
        int(said.get("PriorityTier", 1)),
        said.get("PreemptMode", "OFF"),
        tuple(nodes),
    )


def _associations(text: str | None) -> tuple[Association, ...] | None:
    if text is None:
        return None
    rows = [line.split("|") for line in text.splitlines() if line.strip()]
    return tuple(Association(row[0], row[1], _names(row[2]), row[3]) for row in rows)


def _qualities(text: str | None) -> dict[str, Quality] | None:
    if text is None:
        return None
    rows = [line.split("|") for line in text.splitlines() if line.strip()]
    return {
        name: Quality(name, minutes(wall), _tres(tres), _names(preempts), mode or "cluster", _names(flags))
        for name, wall, tres, preempts, mode, flags in rows
    }


def _tres(text: str) -> dict[str, float]:
    """``cpu=64,gres/gpu=4,mem=500G``, with memory in MB."""
    pairs = (part.split("=", 1) for part in text.split(",") if "=" in part)
    return {name.lower(): _amount(value) for name, value in pairs}


def _amount(text: str) -> float:
    """``500G`` and ``1.5T`` in MB; a number as it is."""
    factors = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
    return float(text[:-1]) * factors[text[-1]] if text[-1:] in factors else float(text)


def minutes(text: str) -> float:
    """A time limit, ``2-00:00:00`` or ``12:00:00``; infinite for none."""
    if text.upper() in NO_LIMIT:
        return math.inf
    days, _, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    hours, mins, seconds = [0] * (3 - len(parts)) + parts
    return int(days or 0) * 1440 + hours * 60 + mins + seconds / 60


def _limit(text: str) -> float:
    return math.inf if text.upper() in NO_LIMIT or text == "0" else float(text)


def _names(text: str) -> frozenset[str]:
    return frozenset(name for name in re.split(r"[,\s]+", text) if name)
