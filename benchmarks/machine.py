"""What the benchmarks share: their options, clock and gauges, and what there is to know of the machine."""

import argparse
import platform
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch.nn.functional import linear

from entropy_valley.machine import processor


def arguments(description: str, rounds: int = 5) -> argparse.ArgumentParser:
    """The options of each benchmark."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder of tables and figures")
    return parser


def write(table: pd.DataFrame, path: Path) -> None:
    """The table as CSV; ``path`` without an ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path.with_suffix(".csv"), index=False)


def seconds(task: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Wall-clock seconds of a task, its kernels included, and its result."""
    synchronise(device)
    start = time.perf_counter()
    result = task()
    synchronise(device)
    return time.perf_counter() - start, result


def synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


@torch.inference_mode()
def matmul_rate(device: str, rows: int, width: int, ffn: int) -> float:
    """Floating-point operations per second of the FFN's product, (rows, width) by (width, ffn): the ceiling.

    Float32 on a CPU, bfloat16 on a GPU, as the models are.
    """
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    states = torch.randn(rows, width, dtype=dtype, device=device)
    weights = torch.randn(ffn, width, dtype=dtype, device=device)
    times = [seconds(lambda: linear(states, weights), device)[0] for _ in range(30)]
    return 2 * rows * width * ffn / statistics.median(times[10:])


def peak_memory(task: Callable[[], Any], device: str) -> int:
    """Bytes that a task held at most beside what was there before it: resident memory, or the GPU allocator's."""
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        task()
        return torch.cuda.max_memory_allocated() - before
    before, most, done = _resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            most[0] = max(most[0], _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    task()
    done.set()
    watcher.join()
    return most[0] - before


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def describe(device: str) -> str:
    """The machine and the library, for the head of a table."""
    cpu = f"{processor()[0]}, {torch.get_num_threads()} threads"
    name = torch.cuda.get_device_name() if device == "cuda" else cpu
    return f"{name}; torch {torch.__version__}, Python {platform.python_version()}"
