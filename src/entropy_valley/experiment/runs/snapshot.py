"""The config of a run as it was started, for the jobs that it starts later.

On a cluster each job is a Snakemake of its own, which reads the config files anew. The first process writes the merged
config beside the results and hands its path down in the environment; a job of the run reads that. A job on a machine
without this folder reads the config files that Snakemake has sent there with the workflow's other sources, as they were
at the start of the run. The name of the path has the digest of the config: it tells whether they are the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment, base_files
from entropy_valley.experiment.config.load import extends, merge, near, overlay, read_files, read_values
from entropy_valley.results import CONFIG

VARIABLE = "ENTROPY_VALLEY_CONFIG"  # the environment variable with the path; empty in a process that a user starts
os.environ.setdefault(VARIABLE, "")
running: Running | None = None  # what this process runs, for what prints the plan; None before its Snakefile is read


def config_files(base: Sequence[str], given: Sequence[str | Path]) -> tuple[list[str], list[str]]:
    """The files that Snakemake lays those ``given`` on the command line over: the two of the repository, ``base``, then
    those that the given ones extend. And all files that a config comes from, for its errors: those of the repository as
    people know them, where they are in this folder. None for a job, see :func:`merged`."""
    if is_handed_down():
        return [], []
    named, order = dict.fromkeys(map(near, given)), list(read_files([*base, *given]))
    below = [path for path in order if path not in named and path not in map(near, base)]
    if order[len(order) - len(named) :] != [*named]:
        remedy = f"Name them all in this order: --configfile {' '.join(order[len(base) :])}"
        raise InputError("config", f"{', '.join(below)} would lie between the files of the command line", remedy)
    known = [str(name) if name.is_file() else path for name, path in zip(base_files(), base, strict=True)]
    return [*base, *below], list(dict.fromkeys([*known, *order[len(base) :]]))


def merged(config: dict[str, Any], base: Sequence[str], read: Sequence[str | Path]) -> dict[str, Any]:
    """The config of the run: of a job that of its run's start, else ``config``, which Snakemake has just merged from
    the files that it has ``read``, with the values of its command line as YAML has them. Of a module to which another
    workflow gives a config, it has not read ``base``."""
    if is_handed_down():
        return json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))
    below = merge(read if base[0] in map(str, read) else [*base, *extends(config)])
    own = read_values(overlay(below, config), below)
    if (path := os.environ[VARIABLE]) and Path(path).stem != _digest(own):
        remedy = "Start the run again: it then uses the config as it is now."
        raise InputError("config", f"is not that of the run, and {path} is not there", remedy)
    return own


def is_handed_down() -> bool:
    """Whether this process is a job that has the config of its run, which was checked when the run began."""
    return Path(os.environ[VARIABLE]).is_file()


def _digest(config: Mapping[str, Any]) -> str:
    return files.text_digest(files.canonical(config))


@dataclass(frozen=True)
class Running:
    """What this process runs: the config, also as it was merged, its files, what the workflow makes, and its rules."""

    experiment: Experiment
    config: Mapping[str, Any]
    files: Sequence[str]
    targets: Sequence[str]
    rules: Any

    def spec_of(self, rule: str) -> Any:
        """The param ``spec`` of a rule, as the rule has it; None where there is no such rule."""
        try:
            return getattr(self.rules, rule).params.spec
        except (WorkflowError, AttributeError):  # no such rule, or one without params
            return None


def hand_down(results: str, config: Mapping[str, Any]) -> None:
    """Write the config down, named by its digest, and hand its path down to the jobs that this process starts; and once
    more as :data:`CONFIG`, for people and for `entropy-valley verify`.

    It is the first file of a run in the folder of results: raises InputError where that is full or read-only."""
    path = Path(results, "work", "configs", f"{_digest(config)}.json").absolute()
    os.environ[VARIABLE] = str(path)
    try:
        files.write_text(path, files.canonical(config))
        files.write_json(Path(results, CONFIG), config)
    except OSError as error:
        remedy = "Free space or correct the permissions, then run the same command again."
        raise InputError(results, f"nothing can be written there: {error.strerror}", remedy) from None
