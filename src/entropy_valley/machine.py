"""This machine: its CPU, free memory and disk, GPUs for a job, the processes of jobs, and what SLURM says of them."""

import ctypes
import functools
import importlib.metadata
import io
import math
import os
import platform
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from entropy_valley.errors import InputError, note

ANSWER = 60  # seconds that SLURM or a driver has to answer, and until SLURM is asked again if it does not
CGROUP, OF_PROCESS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def amount(count: float) -> str:
    """A number of bytes in print."""
    return f"{count / 1e9:.1f} GB" if count >= 5e7 else f"{count / 1e6:.1f} MB"


def free(folder: str | Path) -> int:
    """The free bytes of the file system of a folder, which may not exist yet. What a quota leaves is not known."""
    path = Path(folder).absolute()
    return shutil.disk_usage(next(one for one in (path, *path.parents) if one.exists())).free


def memory() -> int:
    """Bytes of memory that this process may use: of the machine, or of its container or allocation, where version
    2 of control groups limits these."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    lines = OF_PROCESS.read_text(encoding="utf-8").splitlines() if OF_PROCESS.is_file() else []
    for line in lines:
        if not line.startswith("0::"):  # of version 1
            continue
        group = CGROUP / line.removeprefix("0::/")
        for folder in (group, *group.parents):
            limit = folder / "memory.max"
            if limit.is_file() and (text := limit.read_text().strip()).isdigit():
                sizes.append(int(text))
    return min(sizes)


CPUINFO = Path("/proc/cpuinfo")
INSTRUCTIONS = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16")  # sets by which libraries round sums otherwise
FEWER = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")  # variables that switch some off


@functools.cache
def processor() -> tuple[str, list[str]]:
    """The name of the CPU, and those of INSTRUCTIONS that it has."""
    text = CPUINFO.read_text(encoding="utf-8") if CPUINFO.exists() else ""
    of_one = dict(re.findall(r"^(.+?)\s*: (.*)$", text, re.MULTILINE))
    name = of_one.get("model name") or platform.processor() or platform.machine()
    return name, [one for one in INSTRUCTIONS if one in of_one.get("flags", "").split()]


@functools.cache
def description() -> dict[str, Any]:
    """What the last digits of a result may depend on: the CPU, its instruction sets, the variables of FEWER that are
    set, and torch's version."""
    name, instructions = processor()
    limits = {variable: os.environ[variable] for variable in FEWER if os.environ.get(variable)}
    return {"cpu": name, "instructions": instructions, **limits, "torch": importlib.metadata.version("torch")}


# --- Which GPUs of a machine a job takes: Snakemake counts them, and assigns none. A scheduler such as SLURM does.
#
# A job claims a GPU by a socket with the GPU's name, in the namespace of sockets without files. The kernel gives a name
# to one process of the machine, of any user, and frees it when that process ends.

VISIBLE = "CUDA_VISIBLE_DEVICES"
SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
# ``uuid`` names it on this machine, ``visible`` in CUDA_VISIBLE_DEVICES, ``name`` is for people.
Gpu = namedtuple("Gpu", ["uuid", "visible", "name"])


def claimed(count: int, variables: Mapping[str, str]) -> dict[Gpu, socket.socket]:
    """Claim ``count`` GPUs for this process. Each claim lasts until its socket is closed, at the latest by the end of
    the process.

    None is claimed where a scheduler has given this job no more than it asks for, and where no GPU is known. Jobs of a
    run find as many as they want, because Snakemake counts them; others wait. Raises InputError if the machine has
    fewer.
    """
    present = visible(variables)
    if not present or (len(present) <= count and any(map(variables.get, SCHEDULERS))):
        return {}
    if len(present) < count:
        remedy = "Ask for fewer (`training.processes`), or use a machine that has them."
        raise InputError("GPUs", f"{count} wanted, {len(present)} on this machine", remedy)
    text = f"waiting: {count} of {len(present)} GPUs wanted, jobs of another run use them"
    while True:
        claims: dict[Gpu, socket.socket] = {}
        for gpu in present:
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(f"\0entropy-valley {gpu.uuid}")
            except OSError:  # another process has it
                claim.close()
                continue
            claims[gpu] = claim
            if len(claims) == count:
                note(f"on {', '.join(f'{gpu.name} ({gpu.uuid})' for gpu in claims)}")
                return claims
        for claim in claims.values():
            claim.close()
        if text:
            note(text)
            text = ""  # once is enough
        time.sleep(random.uniform(0.2, 1.0))  # two that take one after the other do not wait for each other


def visible(variables: Mapping[str, str]) -> list[Gpu]:
    """The GPUs that a process with these environment variables sees. A name in CUDA_VISIBLE_DEVICES that is no index
    and no whole UUID, such as that of a part of a GPU (MIG), stays as it is."""
    devices: dict[str, Gpu] = {}
    for line in nvidia_smi().splitlines():
        index, uuid, name = line.split(", ", 2)
        devices |= {index: Gpu(uuid, index, name), uuid: Gpu(uuid, uuid, name)}
    given = variables.get(VISIBLE)
    if given is None:
        return [gpu for key, gpu in devices.items() if key == gpu.uuid]
    return [devices.get(token, Gpu(token, token, "")) for token in map(str.strip, given.split(",")) if token]


def nvidia_smi() -> str:
    """A line for each GPU: its index, UUID and name. Nothing without ``nvidia-smi``, or where it fails."""
    done = ask("nvidia-smi", "--query-gpu=index,uuid,name", "--format=csv,noheader")
    return "" if done.returncode else done.stdout


def device_name(device: str) -> str:
    """What the names of results say of the device that computes them: ``cpu``; of a GPU also its model, as in
    ``cuda NVIDIA H100 80GB HBM3``, because another one rounds otherwise."""
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return device
    names = [gpu.name for gpu in visible(os.environ)][int(number or 0) :]
    name = names[0] if names else ""
    if not name:  # no nvidia-smi here, as in some containers, or a part of a GPU
        import torch

        name = torch.cuda.get_device_name(device) if torch.cuda.is_available() else ""
    return f"{kind} {name}".strip()


# --- The process of a job: it has a log, and nothing outlives it.

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def speak_into(log: str | Path) -> None:
    """Let all that this process and its children print go to a file, and let nobody ask questions."""
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with open(log, "wb") as file, open(os.devnull) as nothing:
        for number, replaced in enumerate((nothing, file, file)):
            os.dup2(replaced.fileno(), number)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")


def end_with_parent(number: int, parent: int) -> None:
    """Let the kernel send this process a signal when its parent ends."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it has ended before
            os.kill(os.getpid(), number)


def run_module(name: str, *arguments: str) -> int:
    """Run ``python -m name arguments…``; its exit status.

    It finds the modules that this process finds, and ends with it.
    """
    parent = os.getpid()
    return subprocess.run(
        [sys.executable, "-m", name, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: end_with_parent(signal.SIGKILL, parent),
    ).returncode


# --- SLURM: the time limit of a job, and jobs of an earlier run.
#
# A job that SLURM ends at its limit counts as failed. So one that has just saved what it resumes from, and has little
# time left, goes back to the queue itself. It asks SLURM when its time is over. The signal of `sbatch --signal` would
# not reach it: where SLURM tracks processes by control groups, only the first process of a job step gets it, and that
# is a Snakemake.

REQUEUE = "ENTROPY_VALLEY_REQUEUE"  # the environment variable with how many seconds before the limit; unset: never
_next_look = 0.0  # when to ask SLURM again, by the monotonic clock


def nears_its_limit() -> bool:
    """Whether this process is of a SLURM job that wants to be requeued, and whose time is nearly over.

    Call it only after progress that is or will be saved: a job without any would be requeued for ever. SLURM is asked
    at the first call, and again when time is short, because a limit may be raised.
    """
    global _next_look
    job, seconds = os.environ.get("SLURM_JOB_ID"), os.environ.get(REQUEUE)
    if time.monotonic() < _next_look or not (job and seconds):
        return False
    end = re.search(r"EndTime=(\d+)", ask("scontrol", "show", "job", job).stdout)
    left = int(end[1]) - time.time() - float(seconds) if end else ANSWER
    _next_look = time.monotonic() + left
    return left <= 0


def requeue() -> None:
    """Put this SLURM job back into the queue, and wait for its end. Where SLURM refuses, the job goes on."""
    global _next_look
    _next_look = math.inf
    note("little time is left: saved, and back to the queue")  # before SLURM ends it
    answer = ask("scontrol", "requeue", os.environ["SLURM_JOB_ID"])
    while answer.returncode == 0:
        time.sleep(ANSWER)
    note(f"SLURM does not requeue it: {answer.stderr.strip()}")


def require_empty_queue() -> None:
    """Raise InputError where jobs of an earlier run of this folder wait or run: a second job would wait for the first
    on idle GPUs, or compute the same again. Without SLURM there are none."""
    states = "--states=PENDING,RUNNING,SUSPENDED,CONFIGURING"
    lines = ask("squeue", "--me", "--noheader", states, "--format=%j|%Z|%k").stdout.splitlines()
    folder, runs = os.path.realpath("."), []
    for run, place, comment in (line.split("|", 2) for line in lines if line.count("|") >= 2):
        if comment.startswith("rule_") and os.path.realpath(place) == folder:
            runs.append(run)
    if runs:
        cancel = " ".join(f"scancel --name={run};" for run in dict.fromkeys(runs)).rstrip(";")
        remedy = f"Wait for their end, and their results are taken. Or cancel them, and they resume later: {cancel}"
        raise InputError("SLURM", f"{len(runs)} jobs of an earlier run of this folder are in the queue", remedy)


def ask(*command: str) -> subprocess.CompletedProcess[str]:
    """What a command answers, those of SLURM with times in seconds since 1970; nothing and status 1 where it is not
    installed, or does not answer."""
    variables = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
    try:
        return subprocess.run(
            command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ANSWER
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))
