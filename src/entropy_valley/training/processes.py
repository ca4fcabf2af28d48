"""One process per device: torchrun where there are several, nothing at all where there is one."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from datetime import timedelta

import torch

from entropy_valley.errors import InputError

_PR_SET_PDEATHSIG = 1
# While rank 0 judges an adapter, which reads the backbone once more, the others wait: torch's own patience (NCCL 10
# minutes, gloo 30) would end them before an 8B checkpoint has come from a slow disk.
PATIENCE = timedelta(hours=2)


def launch(processes: int) -> None:
    """Become torchrun running this same command on ``processes`` processes; return at once where one is enough.

    Its rendezvous takes a free port of its own, so jobs run side by side on one machine.
    """
    if processes == 1 or "TORCHELASTIC_RUN_ID" in os.environ:
        return
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    os.execv(sys.executable, [*launcher, "--", *sys.argv])


def use_threads(count: int) -> None:
    """Let torch and the tokenizers of this process use ``count`` CPU threads."""
    os.environ["TOKENIZERS_PARALLELISM"] = str(count > 1).lower()
    os.environ["RAYON_NUM_THREADS"] = str(count)
    torch.set_num_threads(count)


def join(device: str, processes: int) -> int:
    """Prepare torch.distributed and DeepSpeed on ``device`` ("cpu" or "cuda"); the rank of this process.

    Call before anything imports deepspeed. Raises InputError where fewer GPUs than processes are visible.
    """
    if device == "cuda" and torch.cuda.device_count() < processes:
        raise InputError(
            "processes",
            f"{processes} GPUs wanted, {torch.cuda.device_count()} visible",
            "Ask for as many GPUs as `training.processes`, or lower it.",
        )
    os.environ["DS_ACCELERATOR"] = device
    _form_group({"cpu": "gloo", "cuda": "nccl"}[device], processes)
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if torch.distributed.get_world_size() != processes:
        raise RuntimeError(f"{torch.distributed.get_world_size()} processes joined, not {processes}")
    return torch.distributed.get_rank()


def _form_group(backend: str, processes: int) -> None:
    if processes == 1:
        # A store inside the process needs no port, which two jobs on one machine would fight for.
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
        torch.distributed.init_process_group(backend, store=torch.distributed.HashStore(), rank=0, world_size=1)
    else:
        _die_with_launcher()
        torch.distributed.init_process_group(backend, timeout=PATIENCE)


def _die_with_launcher() -> None:
    """Have the kernel end this worker when torchrun dies: SIGKILL would leave it writing into the work folder."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def leave() -> None:
    """Wait for the other processes, then take the process group down."""
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
