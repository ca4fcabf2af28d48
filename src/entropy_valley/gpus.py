"""Which GPUs of a machine a job takes: free ones, unless its scheduler has given it some.

Each GPU has a lock file, named by its UUID in a folder that all users of the machine share. A job holds the locks of
its GPUs as long as any process of it lives; the kernel frees them, whatever ends the job.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import time
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from entropy_valley.errors import InputError

VISIBLE = "CUDA_VISIBLE_DEVICES"
SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
LOCKS = "ENTROPY_VALLEY_GPU_LOCKS"  # the environment variable with another folder of locks
POLL = 0.5  # seconds
UNKNOWN = "GPU"  # the name of one that is not listed
# ``lock`` names it on this machine, ``visible`` in CUDA_VISIBLE_DEVICES, ``name`` is for people.
Gpu = namedtuple("Gpu", ["lock", "visible", "name"])


@contextlib.contextmanager
def taken(
    count: int, variables: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[tuple[dict[str, str], list[int]]]:
    """Wait until ``count`` GPUs are free and hold them; the environment variables that show a process these alone, and
    the open lock files, which it should inherit.

    Nothing is held, and no variable set, where no GPU is asked for, where a scheduler has given this job no more than
    it asks for, and where no GPU is known. Raises InputError if the machine has fewer.
    """
    there = visible(variables) if count else []
    if not there or (len(there) <= count and any(map(variables.get, SCHEDULERS))):
        yield {}, []
        return
    if len(there) < count:
        remedy = "Ask for fewer (`training.processes`), or use a machine that has them."
        raise InputError("GPUs", f"{count} wanted, {len(there)} on this machine", remedy)
    with contextlib.ExitStack() as stack:
        locks = _lock(there, count, stack, say)
        mine = [gpu for gpu in there if gpu.lock in locks]
        say("on " + ", ".join(f"{gpu.name} ({gpu.lock})" for gpu in mine))
        yield {VISIBLE: ",".join(gpu.visible for gpu in mine)}, list(locks.values())


def visible(variables: Mapping[str, str]) -> list[Gpu]:
    """The GPUs that a process with these environment variables sees, as far as ``nvidia-smi`` and they say."""
    there = listed(nvidia_smi()) or loaded()
    if variables.get(VISIBLE) is None:
        return [Gpu(uuid, uuid, name) for uuid, name in there]
    given = [token for token in map(str.strip, variables[VISIBLE].split(",")) if token]
    return [_named(token, there) for token in given]


def device_name(device: str) -> str:
    """What the names of results say of the device that computes them: ``cpu``; of a GPU also its model, as in
    ``cuda NVIDIA H100 80GB HBM3``, because another one rounds otherwise."""
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return device
    there = [gpu.name for gpu in visible(os.environ)]
    name = there[int(number or 0)] if int(number or 0) < len(there) else UNKNOWN
    if name == UNKNOWN:  # no nvidia-smi here, as in some containers
        import torch

        name = torch.cuda.get_device_name(device) if torch.cuda.is_available() else ""
    return f"{kind} {name}".strip()


def _named(token: str, there: list[tuple[str, str]]) -> Gpu:
    """A GPU by its index, or by its UUID or the beginning of it."""
    if token.isdigit() and int(token) < len(there):
        uuid, name = there[int(token)]
        return Gpu(uuid, token, name)
    found = [Gpu(uuid, token, name) for uuid, name in there if uuid.startswith(token)]
    return found[0] if len(found) == 1 else Gpu(token, token, UNKNOWN)


def nvidia_smi() -> str:
    """What ``nvidia-smi -L`` says; nothing without it, or where the driver does not answer."""
    command = ["nvidia-smi", "-L"]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60).stdout
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return ""


def listed(text: str) -> list[tuple[str, str]]:
    """UUID and name of each device. A GPU that is divided (MIG) is not listed itself: its parts are."""
    found: list[tuple[str, str]] = []
    whole, divided = "", False
    for line in text.splitlines():
        what, mark, uuid = line.strip().rpartition(" (UUID: ")
        if mark and what.startswith("GPU "):
            whole, divided = what.partition(": ")[2], False
            found.append((uuid.rstrip(")"), whole))
        elif mark and what.startswith("MIG "):
            found = found if divided else found[:-1]
            divided = True
            found.append((uuid.rstrip(")"), f"{whole} {' '.join(what.split()[:2])}"))
    return found


def loaded(root: str = "/") -> list[tuple[str, str]]:
    """UUID and name of each GPU that this process may open, from the kernel's driver: a container may lack
    ``nvidia-smi``. Where the driver does not know the UUID yet, the index."""
    found: list[tuple[str, str]] = []
    for place in sorted(Path(root, "proc/driver/nvidia/gpus").glob("*/information")):
        lines = place.read_text(encoding="utf-8").splitlines()
        said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        if Path(root, f"dev/nvidia{said.get('Device Minor', '')}").exists():
            uuid = said.get("GPU UUID", "?")
            found.append((str(len(found)) if "?" in uuid else uuid, said.get("Model", "GPU")))
    return found


def _lock(there: list[Gpu], count: int, stack: contextlib.ExitStack, say: Callable[[str], None]) -> dict[str, int]:
    """The locks of ``count`` GPUs, open until ``stack`` closes.

    Jobs queue: only the first one takes locks. Two that want all GPUs would else wait for each other, and one that
    wants many could wait for ever beside those that want one.
    """
    queue, waited = _open("queue", stack), False
    held: dict[str, int] = {}
    files = {gpu.lock: _open(gpu.lock, stack) for gpu in there}
    while True:
        if _locked(queue):
            held |= _free(files, held, count)
        if len(held) == count:
            fcntl.flock(queue, fcntl.LOCK_UN)
            return held
        if not waited:
            say(f"waiting: {count} of {len(there)} GPUs wanted, other jobs use them")
            waited = True
        time.sleep(POLL)


def _free(files: dict[str, int], held: Mapping[str, int], count: int) -> dict[str, int]:
    """Lock further GPUs that are free now, no more than are still wanted."""
    found: dict[str, int] = {}
    for name, file in files.items():
        if name not in held and len(held) + len(found) < count and _locked(file):
            found[name] = file
    return found


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(name: str, stack: contextlib.ExitStack) -> int:
    """A lock file that every user may open; nobody writes to it."""
    folder = Path(os.environ.get(LOCKS, "/tmp/entropy-valley-gpus"))
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)
    path = folder / f"{name.replace('/', '_')}.lock"
    try:
        # Not opened with O_CREAT: in such a folder the kernel refuses that for the file of another user.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))
            path.chmod(0o666)
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    stack.callback(os.close, file)
    return file
