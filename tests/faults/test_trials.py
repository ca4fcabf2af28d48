"""Faults at random moments of every stage: no result is torn, an error names its file, and the next run finishes.

Each trial draws a stage, a fault and its moment; ``ENTROPY_VALLEY_FAULT_TRIALS`` sets how many trials there are.
"""

from __future__ import annotations

import pytest
from faults import KilledBefore, MayNotWrite, NoMoreThan
from stages import stages
from trial import TRIALS, Trial

pytestmark = pytest.mark.faults
STAGES = stages()


def killed_before_an_operation(trial, chance):
    assert trial.run(KilledBefore(trial.killed_at(chance.random(), trial.old))).killed
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


KINDS = [
    killed_before_an_operation,
    killed_in_a_write,
    killed_by_the_clock,
    write_fails,
    read_only,
    two_jobs,
]


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
