"""One trial: a stage in a folder of its own, what may be there after a fault, and the run that follows it."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import children
from chain import Chain, results
from children import Outcome

from entropy_valley.results import CARD, ENDING

TRIALS = int(os.environ.get("ENTROPY_VALLEY_FAULT_TRIALS", "60"))


class Trial:
    """A stage of the chain in ``folder``, before its job; ``old``: over results that other params have made."""

    def __init__(self, chain: Chain, name: str, folder: Path, old: bool = False) -> None:
        self.chain, self.name, self.folder, self.old = chain, name, folder / "here", old
        shutil.copytree(chain.before(name, old), self.folder)
        self.job = chain.stages[name].job()
        self.before, self.after = results(self.folder), results(chain.after(name))

    def run(self, *faults: Any) -> Outcome:
        return children.run(self.folder, self.job, *faults)

    def start(self, *faults: Any) -> children.Running:
        return children.Running(self.folder, self.job, *faults)

    def require_old_or_new(self) -> None:
        """Each result is as it was before, or as it is to be: none is torn, and none is lost. In a folder that was
        replaced, record and model card come last, and may be missing; so may the folder between the two steps."""
        now = results(self.folder)
        for name in now.keys() | self.before.keys():
            replaced = name.endswith((ENDING, CARD)) or not (self.folder / name).parent.exists()
            later = name not in now and replaced
            assert later or now.get(name) in (self.before.get(name), self.after.get(name)), f"{name} is torn or lost"

    def require_finished(self, outcome: Outcome) -> None:
        """The job succeeded, and the results are those of an undisturbed run."""
        assert outcome.status == 0, outcome.said
        now = results(self.folder)
        assert now.keys() == self.after.keys()
        assert [name for name in now if now[name] != self.after[name]] == []

    def killed_at(self, share: float, old: bool = False) -> int:
        """The number of the operation at this share of all, from 1."""
        return 1 + int(share * self.chain.operations(self.name, old))

    def size(self, chance: random.Random) -> int:
        """A number of bytes below the size of a file that the stage writes."""
        sizes = [path.stat().st_size for path in _written(self.chain.before(self.name), self.chain.after(self.name))]
        return chance.randrange(chance.choice(sizes))


def _written(before: Path, after: Path) -> list[Path]:
    """The files of a stage that are not empty."""
    there = {path.relative_to(before) for path in before.rglob("*")}
    found = [path for path in sorted(after.rglob("*")) if path.relative_to(after) not in there and path.is_file()]
    return [path for path in found if path.stat().st_size]
