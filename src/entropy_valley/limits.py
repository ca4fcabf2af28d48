"""What this machine allows: free disk space, memory, open files, and the length of names."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

CGROUP, OF_PROCESS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def amount(count: float) -> str:
    """A number of bytes in print."""
    return f"{count / 1e9:.1f} GB" if count >= 5e7 else f"{count / 1e6:.1f} MB"


def there(folder: str | Path) -> Path:
    """The path, or the nearest folder above it that is there already."""
    path = Path(folder).absolute()
    return next(one for one in (path, *path.parents) if os.access(one, os.F_OK))


def device(folder: str | Path) -> int:
    """The file system of a folder that may not be there yet, as a number."""
    return there(folder).stat().st_dev


def free(folder: str | Path) -> int:
    """The free bytes of its file system. What a quota leaves is not known."""
    return shutil.disk_usage(there(folder)).free


def memory() -> int:
    """Bytes of memory that this process and its jobs may use: of the machine, or of its container or allocation."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_cgroup_limits()])


def _cgroup_limits() -> list[int]:
    """What control groups set as limits, for version 2 and for version 1 of them: of ours, and of those above it."""
    found = []
    lines = OF_PROCESS.read_text(encoding="utf-8").splitlines() if OF_PROCESS.is_file() else []
    for _, controllers, path in (line.split(":", 2) for line in lines):
        if controllers not in ("", "memory"):
            continue
        root, name = (CGROUP / "memory", "memory.limit_in_bytes") if controllers else (CGROUP, "memory.max")
        own = root / path.lstrip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(root) and (folder / name).is_file():
                text = (folder / name).read_text(encoding="utf-8").strip()
                found += [int(text)] if text.isdigit() else []
    return found


def open_files() -> int:
    """How many files a process may have open at once: ``ulimit -n``."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def longest_name(folder: str | Path) -> int:
    """The most bytes of a file's name in a folder."""
    return os.pathconf(there(folder), "PC_NAME_MAX")


def longest_path(folder: str | Path) -> int:
    """The most bytes of a path, its end included."""
    return os.pathconf(there(folder), "PC_PATH_MAX")
