"""What a job took: time, memory and GPU of each attempt, as a line of a table beside the results.

The process that starts the command measures time and memory. What it took of a GPU, only the command knows: it leaves
that in a file whose path it finds in the environment.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time

HANDED_DOWN = "ENTROPY_VALLEY_GPU_USE"  # the environment variable with the path of that file
COLUMNS = ("started", "s", "cpu_s", "max_rss_mb", "gpus", "gpu", "gpu_peak_mb", "status", "host")


class Usage:
    """A job from now on. ``path`` is its table, to which :meth:`write` adds a line."""

    def __init__(self, path: str, gpus: int) -> None:
        self._path, self._gpus = path, gpus
        self._started, self._start = time.strftime("%Y-%m-%dT%H:%M:%S%z"), time.monotonic()
        self._of_gpu = f"{path}.gpu"
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        self.variables = {HANDED_DOWN: os.path.abspath(self._of_gpu)}

    def write(self, status: int) -> None:
        """Add what the commands that have ended took: wall time in seconds, that of all processors together, the
        memory of the largest process at its peak in MB, the same of each GPU, and the exit status."""
        took = resource.getrusage(resource.RUSAGE_CHILDREN)
        name, peak = self._gpu()
        seconds, cpu = time.monotonic() - self._start, took.ru_utime + took.ru_stime
        memory = took.ru_maxrss / 1000  # Linux counts in kB
        values = (self._started, f"{seconds:.2f}", f"{cpu:.2f}", f"{memory:.0f}", self._gpus, name, peak, status)
        new = not os.path.exists(self._path)
        with open(self._path, "a", encoding="utf-8") as file:
            lines = [COLUMNS] * new + [(*values, os.uname().nodename)]
            file.writelines("\t".join(map(str, line)) + "\n" for line in lines)

    def _gpu(self) -> tuple[str, str]:
        """Name and peak as the command has left them; empty where it used none."""
        name, peak = "", ""
        with contextlib.suppress(FileNotFoundError):
            with open(self._of_gpu, encoding="utf-8") as file:
                name, _, peak = file.read().partition("\t")
            os.remove(self._of_gpu)
        return name, peak


def leave_gpu_use() -> None:
    """Leave the name of the GPU that this process used, and the MB that torch reserved at the peak; of several
    processes the first does it. Nothing where torch is not loaded, or used none."""
    path, torch = os.environ.get(HANDED_DOWN), sys.modules.get("torch")
    if path and torch and os.environ.get("RANK", "0") == "0" and torch.cuda.is_initialized():
        text = f"{torch.cuda.get_device_name()}\t{torch.cuda.max_memory_reserved() / 1e6:.0f}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(f"GPU: {text.replace(chr(9), ', at most ')} MB", file=sys.stderr)
