"""One process per device, its threads and its precision: torchrun starts several processes, one runs without it."""

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from datetime import timedelta

import torch

from entropy_valley.errors import InputError
from entropy_valley.machine import end_with_parent, run_module

# Ranks that have read the backbone wait for the others. Torch's default timeouts (NCCL 10 minutes, gloo 30) are too
# short to read an 8B checkpoint from a slow disk.
TIMEOUT = timedelta(hours=2)


def launch(processes: int, module: str, *arguments: str) -> None:
    """Run a module in several processes of this machine and wait for them; if one fails, end this process as well.

    Torchrun picks a free port, so several jobs can run on one machine. By itself it would tell the processes the
    machine's full name; where that does not resolve, they would wait for ever.
    """
    options = ["--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", str(processes)]
    if run_module("torch.distributed.run", *options, "--module", module, *arguments):
        sys.exit(1)


def use_threads(count: int) -> None:
    """Let torch and the tokenizers of this process use ``count`` CPU threads."""
    os.environ["TOKENIZERS_PARALLELISM"] = str(count > 1).lower()
    os.environ["RAYON_NUM_THREADS"] = str(count)
    torch.set_num_threads(count)


@contextlib.contextmanager
def float32_products(device: torch.device | str) -> Iterator[str]:
    """Set how float32 matrices are multiplied while the block runs, and say how: "float32" or "TF32".

    On a CPU in float32: with AMX, torch's lower precisions are bfloat16 there, a relative error of 2e-3. On a GPU in
    TF32: in a bfloat16 training, only the adapters' products are float32.
    """
    before = torch.get_float32_matmul_precision()
    on_cpu = torch.device(device).type == "cpu"
    torch.set_float32_matmul_precision("highest" if on_cpu else "high")
    try:
        yield "float32" if on_cpu else "TF32"
    finally:
        torch.set_float32_matmul_precision(before)


def join(device: str, processes: int) -> int:
    """Set up torch.distributed and DeepSpeed on ``device`` ("cpu" or "cuda"); return the rank of this process.

    Call it before deepspeed is imported. Raises InputError if fewer GPUs than processes are visible.
    """
    if device == "cuda" and torch.cuda.device_count() < processes:
        raise InputError(
            "processes",
            f"{processes} GPUs wanted, {torch.cuda.device_count()} visible",
            "Ask for as many GPUs as `training.processes`, or lower it.",
        )
    os.environ["DS_ACCELERATOR"] = device
    # DeepSpeed calls functions by names that torch 2.13 deprecates: nothing that the reader of a log can change.
    warnings.filterwarnings("ignore", r"`torch\.distributed\.\w+` is deprecated", FutureWarning)
    if processes == 1:
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
    backend, gpu = "gloo", None
    if device == "cuda":
        # The current GPU, before NCCL or a tensor takes the first one in every process. With it, NCCL connects at once:
        # a broken link shows before the load.
        backend, gpu = "nccl", torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(gpu)
    if processes == 1:
        # A store inside the process needs no port, so two jobs on one machine cannot collide.
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group(backend, device_id=gpu, store=store, rank=0, world_size=1)
    else:
        end_with_parent(signal.SIGKILL, os.getppid())  # else a killed torchrun leaves workers that write files
        torch.distributed.init_process_group(backend, timeout=TIMEOUT, device_id=gpu)
    return torch.distributed.get_rank()


def first_says(value: bool, device: torch.device | str) -> bool:
    """The value that the first process has, in every one."""
    flag = torch.tensor(int(value), device=device)
    torch.distributed.broadcast(flag, src=0)
    return bool(flag)


def leave() -> None:
    """Wait for the other processes, then destroy the process group."""
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
