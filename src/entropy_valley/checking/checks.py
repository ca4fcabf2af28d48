"""What a check is, and the checks of the installation and the device, for which torch may be missing."""

from __future__ import annotations

import math
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from entropy_valley import machine
from entropy_valley.errors import InputError

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
MEASURED, SLOW = "measured", "slow"  # of the thorough check: nothing was expected, or more speed was
Check = Callable[[], str]


class CheckError(Exception):
    """A check has failed. The message has the numbers and what to do."""


class SkippedError(Exception):
    """A check does not apply here. The message says why."""


@dataclass(frozen=True)
class Line:
    """The outcome of a check, the seconds it took, and what was ``expected``, if that is a number or a count."""

    name: str
    state: str
    text: str
    seconds: float = 0.0
    expected: str = ""

    def __str__(self) -> str:
        expected = f"; expected: {self.expected}" if self.expected else ""
        return f"{self.state:8} {self.name:25} {self.text}{expected} ({self.seconds:.1f} s)"

    @property
    def row(self) -> str:
        """As a row of a Markdown table."""
        cells = (self.name, self.expected, self.text, self.state)
        return f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in cells)} |"


def pass_speeds(folder: Path) -> dict[str, float]:
    """Operations a second of a full decoding pass of each backbone, from the lines of checks in the files of a folder;
    of several GPUs the slowest."""
    speeds: dict[str, float] = {}
    for file in sorted(folder.glob("*.txt")):
        lines = file.read_text(encoding="utf-8")
        for name, rate in re.findall(rf"^{OK} +pass (\S+) .*?([1-9][\d,]*) GFLOP/s", lines, re.M):
            speeds[name] = min(speeds.get(name, math.inf), float(rate.replace(",", "")) * 1e9)
    return speeds


def run(checks: Iterable[tuple[str, Check]], missing: str = FAILED) -> Iterator[Line]:
    """Run each check and yield its line. An exception of any kind is a failure; ``missing``: the state where a package
    is not installed."""
    for name, check in checks:
        started = time.monotonic()
        try:
            state, text = OK, check()
        except Exception as error:
            state, text = ending(error, missing)
        yield Line(name, state, " ".join(text.split()), round(time.monotonic() - started, 1))


def skip(reason: str) -> str:
    """A check that does not apply here."""
    raise SkippedError(reason)


def ending(error: Exception, missing: str = FAILED) -> tuple[str, str]:
    """State and text of a check that raised."""
    if isinstance(error, SkippedError):
        return SKIPPED, str(error)
    if isinstance(error, CheckError | InputError):
        return FAILED, str(error)
    if isinstance(error, ModuleNotFoundError):  # DeepSpeed or COMET: a machine may have a part of what jobs need
        return missing, f"{error.name} is not installed here"
    traceback.print_exception(error)
    return FAILED, f"{type(error).__name__}: {error}"


def report(lines: Iterable[Line], to: TextIO | None = None) -> list[Line]:
    """Print each line as soon as it is there. Exits with status 1 if a check has failed."""
    done = []
    for line in lines:
        print(line, file=to, flush=True)
        done.append(line)
    if any(line.state == FAILED for line in done):
        sys.exit(1)
    return done


def installation(wanted: str = "") -> Iterator[Line]:
    """What is installed, perhaps without a GPU. ``wanted``: a build of torch such as "cu126"."""
    return run([("torch", partial(torch_build, wanted)), ("GPUs", gpus)])


def torch_build(wanted: str = "") -> str:
    """Torch can be imported, and is the ``wanted`` build, such as "cu126" or "cpu" ("": any)."""
    import torch

    build = f"cu{torch.version.cuda.replace('.', '')}" if torch.version.cuda else "cpu"
    if wanted and build != wanted:
        raise CheckError(f"torch {torch.__version__} is the {build} build: run `make install CUDA={wanted}`")
    return f"torch {torch.__version__}, {build} build"


def gpus(device: str = "cpu") -> str:
    """The NVIDIA driver runs this build of torch, which computes on each GPU; for ``device`` "cuda" one is there."""
    import torch

    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:  # torch says whether the build, the driver or the GPU is missing
        reason = str(error).strip().split("\n")[0]
        if device == "cuda":
            remedy = "start on a machine with a GPU, run `make install CUDA=BUILD`, or set `device: cpu`"
            raise CheckError(f"{reason}. docs/running.md has the builds: {remedy}") from None
        if "too old" in reason:
            raise CheckError(f"{reason}. docs/running.md has builds for older drivers") from None
        raise SkippedError(reason) from None
    devices = [torch.device("cuda", number) for number in range(torch.cuda.device_count())]
    for one in devices:
        (torch.ones(2, device=one) + 1).cpu()  # raises where this build has no kernels for the GPU
    properties = map(torch.cuda.get_device_properties, devices)
    return "; ".join(f"{one.name}, {machine.amount(one.total_memory)}, {one.major}.{one.minor}" for one in properties)
