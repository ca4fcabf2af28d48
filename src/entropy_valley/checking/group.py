"""The processes of a training: do they reach each other, and do they train together?

``python -m entropy_valley.checking.group`` is what each of them runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from entropy_valley import files
from entropy_valley.checking import tiny
from entropy_valley.checking.line import CheckError

FAMILY = "llada"
TIMEOUT = 420  # seconds; processes that cannot reach each other wait for hours
_EXCHANGE, _HISTORY = "all_reduce.json", "losses.csv"
_ELEMENTS = {"cpu": 2**20, "cuda": 2**26}  # float32


class Group:
    """The processes of one check, started at the first question."""

    def __init__(self, folder: Path, device: str, processes: int, precision: str) -> None:
        self.folder, self.device, self.processes, self.precision = folder, device, processes, precision
        self._error: str | None = None

    def exchange(self) -> str:
        """The sum over all processes is right; how fast it was."""
        self._run()
        if not (self.folder / _EXCHANGE).exists():
            raise CheckError(self._error or "nothing was measured")
        found = files.read_json(self.folder / _EXCHANGE)
        return f"{found['backend']}, {self.processes} processes, {found['gigabytes_per_second']:.1f} GB/s each"

    def training(self) -> str:
        """Two steps of a training end in an adapter that passes the checks of every training."""
        self._run()
        if not (history := self.folder / "adapter" / _HISTORY).exists():
            raise CheckError(self._error or "no adapter was written")
        losses = [row.split(",")[1] for row in history.read_text(encoding="utf-8").splitlines()[1:]]
        return f"{self.processes} processes, {self.precision}, losses {', '.join(losses)}"

    def _run(self) -> None:
        if self.folder.exists():
            return
        self.folder.mkdir(parents=True)
        if self.device == "cuda" and (there := _gpus()) < self.processes:
            self._error = f"{there} GPUs for the {self.processes} processes of a training: lower `training.processes`"
            return
        tiny.write(self.folder / FAMILY, FAMILY, eos=1.5)
        files.write_jsonl(self.folder / "train.jsonl", tiny.ROWS)
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(self.processes)]
        given = ["--device", self.device, "--processes", str(self.processes), "--precision", self.precision]
        command = [sys.executable, *(launcher if self.processes > 1 else []), "-m", __name__, str(self.folder), *given]
        status, said = _bounded(command)
        if status:
            sys.stderr.write(said)
            hint = ". NCCL_DEBUG=INFO says more; try NCCL_P2P_DISABLE=1" if self.device == "cuda" else ""
            self._error = f"the processes {'did not end' if status < 0 else 'failed'}: {_last_words(said)}{hint}"


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()


def _bounded(command: list[str]) -> tuple[int, str]:
    """Exit status (negative: killed, after :data:`TIMEOUT`) and what was said, of a command with its children."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        said, _ = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
    return process.returncode, said


def _last_words(said: str) -> str:
    """The last line that names an error, of a traceback before torchrun's own."""
    named = [line for line in said.splitlines() if "Error" in line and "ChildFailedError" not in line]
    return (named or said.splitlines() or ["nothing was said"])[-1].strip()


def _measure(device: str, processes: int) -> float:
    """Sum over all processes; bytes a second that each of them sums. Raises RuntimeError for a wrong sum."""
    import torch

    values = torch.full((_ELEMENTS[device],), float(torch.distributed.get_rank() + 1), device=device)
    torch.distributed.all_reduce(values)
    expected = processes * (processes + 1) / 2
    if not (values == expected).all():
        raise RuntimeError(f"all_reduce gives {values.unique().tolist()[:4]}, not {expected}")
    started = time.perf_counter()
    for _ in range(5):
        torch.distributed.all_reduce(values)
    float(values[0])  # a GPU ends its work before a number can be read
    return 5 * values.nbytes / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", required=True)
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--precision", required=True)
    options = parser.parse_args()
    from entropy_valley.training import processes, sft

    processes.use_threads(1)
    rank = processes.join(options.device, options.processes)
    import torch

    speed, folder = _measure(options.device, options.processes), options.folder
    if rank == 0:
        found = {"backend": torch.distributed.get_backend(), "gigabytes_per_second": speed / 1e9}
        files.write_json(folder / _EXCHANGE, found)
    job = sft.Job(
        tiny.training(FAMILY, options.precision),
        corpus=folder / "train.jsonl",
        backbone=folder / FAMILY,
        out=folder / "adapter",
        work=folder / "work",
        logs=folder / "logs",
        checkpoint_every=1,
        processes=options.processes,
        micro_tokens=256,
        device=options.device,
    )
    sft.train(job, rank)
    processes.leave()


if __name__ == "__main__":
    main()
