"""How much disk and memory this machine allows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

CGROUP, OF_PROCESS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def amount(count: float) -> str:
    """A number of bytes in print."""
    return f"{count / 1e9:.1f} GB" if count >= 5e7 else f"{count / 1e6:.1f} MB"


def free(folder: str | Path) -> int:
    """The free bytes of the file system of a folder, which may not exist yet. What a quota leaves is not known."""
    path = Path(folder).absolute()
    return shutil.disk_usage(next(one for one in (path, *path.parents) if one.exists())).free


def memory() -> int:
    """Bytes of memory that this process may use: of the machine, or of its container or allocation."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in OF_PROCESS.read_text(encoding="utf-8").splitlines() if OF_PROCESS.is_file() else ():
        _, controllers, path = line.split(":", 2)
        # Version 2 of control groups has one tree without a name, version 1 one for each controller.
        root, name = (CGROUP / "memory", "memory.limit_in_bytes") if controllers else (CGROUP, "memory.max")
        group = root / path.lstrip("/")
        for file in (folder / name for folder in (group, *group.parents) if folder.is_relative_to(root)):
            if controllers in ("", "memory") and file.is_file() and (text := file.read_text().strip()).isdigit():
                sizes.append(int(text))
    return min(sizes)
