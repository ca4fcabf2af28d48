"""The config of a run as it was started, for the jobs that it starts later.

On a cluster each job is a Snakemake of its own, which reads the config files anew. The first process writes the merged
config beside the results and hands its path down in the environment; a job of the run reads that.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.config import Experiment, base_files
from entropy_valley.config.expand import overlay
from entropy_valley.config.load import EXTENDS, extended, merge, read_files
from entropy_valley.errors import listed
from entropy_valley.provenance import code

VARIABLE = "ENTROPY_VALLEY_CONFIG"  # the environment variable with the path; empty in a process that a user starts
os.environ.setdefault(VARIABLE, "")
_current: dict[str, Any] = {}  # of this process: the config, and the code that it was started with


def read(
    config: dict[str, Any], base: Sequence[str], given: Sequence[str | Path], options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The config of the run, and the files that it comes from: the two of the repository, ``base``, then those that are
    ``given`` on the command line, each after what it extends. Of a job both are those of its run's start: no files.

    Snakemake has merged ``config`` from all of them and the ``options``, those of ``--config``; it does not know what a
    file extends. Of a module to which another workflow gives a config, it has not read ``base``.
    """
    path = os.environ[VARIABLE]
    if path and path != _current.get("path"):  # not handed down by this process, which may read several Snakefiles
        return json.loads(Path(path).read_text(encoding="utf-8")), []
    over = [path for path in given if str(path) not in base]
    if base[0] not in map(str, given):
        config = overlay(merge([*base, *extended(config)]), config)
    elif EXTENDS in config:
        config = overlay(merge([*base, *over]), options)
    shown = [name if name.is_file() else path for name, path in zip(base_files(), base, strict=True)]
    return config, list(read_files([*shown, *over]))


def begin(experiment: Experiment, files: Sequence[str]) -> None:
    """Remember what this process runs, from which config files, and by which code."""
    _current.update(experiment=experiment, files=files, code=code())


def hand_down(results: str, config: Mapping[str, Any]) -> None:
    """Write the config down, named by its digest, and hand its path down to the jobs that this process starts."""
    text = files.canonical(config)
    path = Path(results, "work", "configs", f"{files.text_digest(text)}.json").absolute()
    _current["path"] = os.environ[VARIABLE] = str(path)
    if not path.is_file():
        files.write_text(path, text)


def experiment() -> Experiment | None:
    """The config that this process runs, if its Snakefile has been read: for what prints the plan."""
    return _current.get("experiment")


def warn_of_changed_code() -> None:
    """Say at the end of a run which code was edited meanwhile: its results name the code that each was made by."""
    before, now = _current["code"], code()
    changed = [name for name in dict.fromkeys([*before, *now]) if before.get(name) != now.get(name)]
    if changed:
        text = f"warning: this code was edited during the run: {listed(changed, 8)}. Jobs may have used either version."
        print(text, file=sys.stderr)
