"""Snakemake in processes forked from one that has imported it: importing takes as long as a dry run."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "snakemake.cli",
        "entropy_valley.runs.inventory",
        "entropy_valley.config.params",
        "entropy_valley.tables",
    ]
)


def run(folder: Path, arguments: list[str], path: str) -> tuple[int, str]:
    """Exit status and all that Snakemake says, in ``folder`` with programs searched along ``path``."""
    said = folder / "said.txt"
    process = FORKED.Process(target=_snakemake, args=(folder, arguments, path, said))
    process.start()
    process.join()
    return process.exitcode, said.read_text()


def _snakemake(folder: Path, arguments: list[str], path: str, said: Path) -> None:
    os.chdir(folder)
    os.environ["PATH"] = path
    with open(said, "w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    from snakemake.cli import main

    sys.exit(main(arguments))
