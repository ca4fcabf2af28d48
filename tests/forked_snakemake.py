"""Snakemake in processes forked from one that has imported it: importing takes longer than a dry run."""

import functools
import multiprocessing
import os
import sys
from multiprocessing import forkserver
from pathlib import Path
from unittest import mock

from entropy_valley.experiment.runs import snapshot

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "snakemake.cli",
        "snakemake.report.html_reporter",  # with the plugins for SLURM: what Snakemake looks for at each start
        "snakemake_executor_plugin_slurm",
        "snakemake_logger_plugin_entropy_valley",
        "nbformat",
        "requests",
        "smart_open",
        "snakemake.profiles",
        "snakemake.storage",
        "entropy_valley.experiment.checking.subject",
        "entropy_valley.experiment.config.params",
        "entropy_valley.experiment.tables.document",
        "entropy_valley.experiment.tables.live",
        "entropy_valley.experiment.tables.pages",
        "entropy_valley.experiment.runs.jobs",
        "forked_start",
    ]
)


@functools.cache
def _start_server() -> None:
    """Start the process that others are forked from, which finds modules of tests, too."""
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
        forkserver.ensure_running()


def run(folder: Path, arguments: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """Exit status and all that Snakemake prints, in ``folder`` with these environment variables."""
    _start_server()
    output = folder / "output.txt"
    process = FORKED.Process(target=_snakemake, args=(folder, arguments, variables, output))
    process.start()
    process.join()
    return process.exitcode, output.read_text()


def _snakemake(folder: Path, arguments: list[str], variables: dict[str, str], output: Path) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({snapshot.VARIABLE: "", **variables})  # as a process that imports it anew sets it
    with open(output, "w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    from snakemake.cli import main

    sys.argv[1:] = arguments  # the plugin's errors look there

    sys.exit(main(arguments))
