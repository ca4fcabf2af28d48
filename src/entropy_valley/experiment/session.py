"""A run of the workflow as its user started it: what was asked for, by which config, with which code.

Each job of a cluster is a Snakemake of its own that reads the config files anew. It gets this description, and ends
with an error if the config or the code has changed since.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from entropy_valley import files, run
from entropy_valley.differences import differences
from entropy_valley.errors import InputError, listed
from entropy_valley.experiment.schema import Experiment


@dataclass(frozen=True)
class Session:
    """``targets`` are as the user gave them, none for the default; ``config`` is written out and checked; ``code`` has
    the digest of each file, see :func:`run.code`; ``unfinished`` are the results of models that the run makes."""

    id: str
    targets: tuple[str, ...]
    config: dict[str, Any]
    code: dict[str, str]
    unfinished: frozenset[str] = frozenset()

    @classmethod
    def start(cls, experiment: Experiment, targets: Iterable[str] = ()) -> Self:
        """A new run. Its id begins with the time, so that ids sort as runs were started."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:8]}"
        return cls(name, tuple(targets), plain(experiment), run.code())

    def asked(self, targets: Iterable[str], unfinished: Iterable[str] = ()) -> Self:
        """This run with its targets, and the results of models that it makes: known only when the rules are read."""
        return dataclasses.replace(self, targets=tuple(targets), unfinished=frozenset(unfinished))

    @classmethod
    def handed_down(cls) -> Self | None:
        """The run that this process is a job of; None in a process that a user starts."""
        found = run.description()
        if found is None:
            return None
        return cls(found["id"], tuple(found["targets"]), found["config"], found["code"], frozenset(found["unfinished"]))

    def write(self, folder: str | Path) -> Path:
        """Write the description into ``folder``, for the jobs that this process starts from now on."""
        path = Path(folder).absolute() / f"{self.id}.json"
        files.write_json(path, {**vars(self), "unfinished": sorted(self.unfinished)})
        os.environ[run.HANDED_DOWN] = str(path)
        return path

    @staticmethod
    def end() -> None:
        """Remove the description: no job needs it any more."""
        Path(os.environ.pop(run.HANDED_DOWN)).unlink(missing_ok=True)

    def require_same(self, experiment: Experiment) -> None:
        """Raise InputError that names the keys of the config, or the files of code, that have changed."""
        changed = [str(one) for one in differences(self.config, plain(experiment))]
        if changed:
            raise InputError("config", f"changed since this run was started: {listed(changed, 8)}", run.REMEDY)
        run.require_same_code(self.code)


def current(experiment: Experiment, *, job: bool) -> Session:
    """The run that this Snakemake is: a new one, or with ``job`` the one that it is a job of, checked.

    A run that the user's own shell names is none of this process. Raises InputError for a job without a run, and as
    :meth:`Session.require_same` does.
    """
    if not job:
        os.environ.pop(run.HANDED_DOWN, None)
        return Session.start(experiment)
    if (session := Session.handed_down()) is None:
        remedy = "Start Snakemake without --no-hooks, and let jobs have the environment of the one that submits them."
        raise InputError(run.HANDED_DOWN, "not set in a job, so nothing says which run it belongs to", remedy)
    session.require_same(experiment)
    return session


def plain(experiment: Experiment) -> dict[str, Any]:
    """The config as JSON has it."""
    return json.loads(files.canonical(experiment.model_dump(mode="json", warnings=False)))
