"""Faults at random moments of every stage: no result is torn, an error names its file, and the next run finishes.

Each trial draws a stage, a fault and its moment; ``ENTROPY_VALLEY_FAULT_TRIALS`` sets how many trials there are.
"""

import random
import shutil
from pathlib import Path
from typing import Any

import children
import pytest
from chain import TRIALS, Chain, results
from children import Outcome
from faults import KilledBefore, MayNotWrite, NoMoreThan
from stages import stages

from entropy_valley.results import CARD, ENDING

pytestmark = pytest.mark.faults
STAGES = stages()


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

    def size(self, chance: random.Random) -> int:
        """A number of bytes below the size of a file that the stage writes."""
        before, after = self.chain.before(self.name), self.chain.after(self.name)
        there = {path.relative_to(before) for path in before.rglob("*")}
        new = [path for path in sorted(after.rglob("*")) if path.relative_to(after) not in there and path.is_file()]
        return chance.randrange(chance.choice([size for path in new if (size := path.stat().st_size)]))


def killed_before_an_operation(trial, chance):
    last = trial.chain.operations(trial.name, trial.old)
    assert trial.run(KilledBefore(chance.randint(1, last))).killed
    trial.require_old_or_new()


def killed_in_a_write(trial, chance):
    assert trial.run(NoMoreThan(trial.size(chance), killed=True)).killed
    trial.require_old_or_new()


def killed_by_the_clock(trial, chance):
    """Twice, and resumed each time."""
    for _ in range(2):
        running = trial.start()
        running.kill_after(chance.uniform(0, trial.chain.seconds[trial.name]))
        running.ended()
        trial.require_old_or_new()


def write_fails(trial, chance):
    failed_or_finished(trial, trial.run(NoMoreThan(trial.size(chance))))


def read_only(trial, chance):
    """One of the folders that the stage writes to, or the folder of all."""
    folders = sorted({path.parent for path in trial.folder.rglob("*") if path.is_file()})
    own = [folder for folder in folders if not folder.is_relative_to(trial.folder / "given")]
    folder = chance.choice([trial.folder, *own])
    failed_or_finished(trial, trial.run(MayNotWrite(str(folder))))
    folder.chmod(0o755)


def two_jobs(trial, chance):
    """They begin at once, or the second one while the first one works."""
    first = trial.start()
    first.wait(chance.choice([0, chance.uniform(0, trial.chain.seconds[trial.name])]))
    second = trial.start()
    for running in (first, second):
        trial.require_finished(running.ended())


KINDS = [killed_before_an_operation, killed_in_a_write, killed_by_the_clock, write_fails, read_only, two_jobs]


def failed_or_finished(trial, outcome):
    """One clear error that names a path in the folder; or the write that failed was none of a result's."""
    if outcome.status == 0:
        trial.require_finished(outcome)
        return
    place = outcome.error.removeprefix("error: ").split(": ")[0]
    assert (trial.folder / place).exists() or (trial.folder / place).parent.exists(), outcome.said
    trial.require_old_or_new()


@pytest.mark.parametrize("number", range(TRIALS))
def test_a_fault(chain, chance, tmp_path, number):
    name, kind = chance.choice(list(STAGES)), KINDS[number % len(KINDS)]
    in_a_write = kind in (killed_in_a_write, two_jobs)
    trial = Trial(chain, name, tmp_path, old=bool(STAGES[name].other) and not in_a_write and chance.random() < 0.5)
    kind(trial, chance)
    trial.require_finished(trial.run())
