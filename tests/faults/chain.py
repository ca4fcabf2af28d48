"""The chain of :mod:`stages`, run once and undisturbed: what is there before each stage and after it."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import children
from children import Job
from faults import Counted
from stages import given, stages

TRIALS = int(os.environ.get("ENTROPY_VALLEY_FAULT_TRIALS", "60"))
# What is not a result: logs, what a run took, finished work by key, checkpoints of a training.
NO_RESULTS = ("logs", "benchmarks", "store", "work", "given")


def results(folder: Path) -> dict[str, bytes]:
    """The bytes of all results; hidden files are what killed writers leave, and digests kept beside large files."""
    found = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        str(name): path.read_bytes()
        for name, path in found.items()
        if name.parts[0] not in NO_RESULTS and not any(part.startswith(".") for part in name.parts)
    }


class Chain:
    """Every stage, undisturbed, once."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._given, self.stages = folder, folder / "given", stages()
        self.seconds: dict[str, float] = {}
        self._given.mkdir()
        children.prepare()
        children.call(self._given, given)

    def before(self, name: str, old: bool = False) -> Path:
        """A folder with what a stage starts from; ``old``: with results that other params have made."""
        folder, stage = self._folder / f"{name}.{'old' if old else 'before'}", self.stages[name]
        if not folder.exists():
            if old:
                self._run(self.before(name), folder, stage.job(old=True))
            else:
                shutil.copytree(self.after(stage.needs[-1]) if stage.needs else self._given, folder)
        return folder

    def after(self, name: str) -> Path:
        """The folder after a stage."""
        folder, before = self._folder / f"{name}.after", self.before(name)
        if not folder.exists():
            began = time.monotonic()
            self._run(before, folder, self.stages[name].job(), self._count(name))
            self.seconds[name] = time.monotonic() - began
        return folder

    def operations(self, name: str, old: bool = False) -> int:
        """How many operations on files a stage does."""
        self.after(name)
        folder = self._folder / f"{name}.counted"
        if old and not folder.exists():
            self._run(self.before(name, old), folder, self.stages[name].job(), self._count(name, old))
            assert results(folder) == results(self.after(name))
        return self._count(name, old).read()

    def _count(self, name: str, old: bool = False) -> Counted:
        return Counted(self._folder / f"{name}.{old}.count")

    @staticmethod
    def _run(start: Path, folder: Path, job: Job, *more: Any) -> None:
        shutil.copytree(start, folder)
        outcome = children.run(folder, job, *more)
        assert outcome.status == 0, outcome.said
