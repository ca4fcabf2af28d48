"""Is there a GPU that this torch can use? Asked of files and of `nvidia-smi`, so torch itself is not imported."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from entropy_valley.errors import InputError

# The oldest Linux driver of each major CUDA version: https://docs.nvidia.com/deploy/cuda-compatibility, "Minor version
# compatibility"; the full numbers are those of the release notes of CUDA 12.0 and 13.0.
OLDEST_DRIVER = {12: "525.60.13", 13: "580.65.06"}
# The builds of the pinned torch on https://download.pytorch.org/whl, the preferred one first.
BUILDS = {"cu130": "13.0", "cu126": "12.6", "cu132": "13.2"}

_DRIVER = Path("/proc/driver/nvidia")  # what the kernel's module says; containers may lack `nvidia-smi`


@dataclass(frozen=True)
class Machine:
    """The installed torch, the CUDA version it is built for (None: a CPU build), the driver (None: none is loaded),
    and the names of the GPUs that the driver shows, whatever CUDA_VISIBLE_DEVICES hides."""

    torch: str
    cuda: str | None
    driver: str | None
    gpus: tuple[str, ...]

    @classmethod
    def here(cls) -> Self:
        """This machine and this environment."""
        rows = _nvidia_smi()
        driver, names = (rows[0][0], [name for _, name in rows]) if rows else (_loaded_driver(), _loaded_gpus())
        return cls(importlib.metadata.version("torch"), _cuda(), driver, tuple(names))

    def __str__(self) -> str:
        build = f"built for CUDA {self.cuda}" if self.cuda else "a CPU build"
        driver = f"NVIDIA driver {self.driver}" if self.driver else "no NVIDIA driver"
        return f"torch {self.torch} is {build}; this machine has {driver} and {_count(self.gpus)}"

    @property
    def advised(self) -> str | None:
        """The build of torch that the driver can run; None without a driver, or for one that is too old for all."""
        known = self.driver and [name for name, cuda in BUILDS.items() if not too_old(self.driver, cuda)]
        return known[0] if known else None

    def problem(self) -> str | None:
        """Why torch cannot use a GPU here; None where nothing speaks against it."""
        if not self.driver:
            return "the NVIDIA driver is missing"
        if not self.cuda:
            return "this torch cannot use a GPU"
        if too_old(self.driver, self.cuda):
            return f"the driver is too old: CUDA {self.cuda} needs {oldest(self.cuda)} or later"
        return None if self.gpus else "the driver shows no GPU"

    def require_gpu(self) -> None:
        """Raise InputError unless torch can use a GPU here."""
        if problem := self.problem():
            build = f"Run `make install CUDA={self.advised}`" if self.advised else "Install or update the driver"
            remedy = f"{build}, start on a machine with a GPU, or set `device: cpu`. docs/install.md has a table."
            raise InputError("device: cuda", f"{problem}. {self}", remedy)


def torch_build() -> str:
    """The version of torch, with the CUDA version that it is built for."""
    return f"{importlib.metadata.version('torch')} for CUDA {_cuda()}"


def oldest(cuda: str) -> str:
    """The oldest driver that runs programs of a CUDA version, such as "12.6"."""
    major = int(cuda.split(".")[0])
    return OLDEST_DRIVER.get(major, OLDEST_DRIVER[max(OLDEST_DRIVER)])


def too_old(driver: str, cuda: str) -> bool:
    """Whether a driver is older than a CUDA version needs."""
    return _numbers(driver) < _numbers(oldest(cuda))


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def _count(gpus: tuple[str, ...]) -> str:
    kinds = [f"{gpus.count(name)} × {name}" for name in dict.fromkeys(gpus)]
    return ", ".join(kinds) or "no GPU"


def _cuda() -> str | None:
    """What torch/version.py says that it is built for: the wheels of PyPI do not have it in their version."""
    found = importlib.util.find_spec("torch")
    if not found or not found.origin:
        return None
    text = (Path(found.origin).parent / "version.py").read_text(encoding="utf-8")
    match = re.search(r"^cuda\b.*= '([\d.]+)'", text, re.MULTILINE)
    return match[1] if match else None


def _nvidia_smi() -> list[tuple[str, str]]:
    """(driver, name) of each GPU; [] where the program is missing or fails."""
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", "--query-gpu=driver_version,name", "--format=csv,noheader"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        asked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        rows = [line.split(", ", 1) for line in asked.stdout.splitlines() if asked.returncode == 0 and ", " in line]
        return [(driver.strip(), name.strip()) for driver, name in rows]
    return []


def _loaded_driver() -> str | None:
    """The driver that the kernel has loaded."""
    path = _DRIVER / "version"
    match = re.search(r"Kernel Module.*?\s(\d+\.\d+[\d.]*)", path.read_text()) if path.is_file() else None
    return match[1] if match else None


def _loaded_gpus() -> list[str]:
    """The models of its GPUs."""
    texts = [path.read_text() for path in sorted(_DRIVER.glob("gpus/*/information"))]
    return [match[1] for text in texts if (match := re.search(r"^Model:\s+(.+?)\s*$", text, re.MULTILINE))]
