"""Two runs on one results folder, file systems without locks, locks that a killed job has left, and a clock that is
moved."""

from __future__ import annotations

import errno
import os

import pytest
from faults import ClockMoved, NoLocks
from stages import stages
from trial import Trial

pytestmark = pytest.mark.faults
STAGES = list(stages())
LOCKING = ["corpora", "train"]
ERRORS = [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP]
DAY = 86_400


@pytest.mark.parametrize("name", STAGES)
def test_two_jobs_make_one_result(chain, chance, tmp_path, name):
    """They begin at once, or the second one while the first one works."""
    trial = Trial(chain, name, tmp_path, old=bool(chain.stages[name].other) and chance.random() < 0.5)
    first = trial.start()
    first.wait(chance.choice([0, chance.uniform(0, chain.seconds[name])]))
    second = trial.start()
    for running in (first, second):
        trial.require_finished(running.ended())


@pytest.mark.parametrize("name", ["corpora", "train"])
def test_of_two_jobs_one_is_killed(chain, chance, tmp_path, name):
    trial = Trial(chain, name, tmp_path)
    first = trial.start()
    second = trial.start()
    first.kill_after(chance.uniform(0, chain.seconds[name]))
    first.ended()
    trial.require_finished(second.ended())


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", LOCKING)
def test_a_file_system_without_flock(chain, tmp_path, name, error):
    trial = Trial(chain, name, tmp_path)
    trial.require_finished(trial.run(NoLocks(error)))


@pytest.mark.parametrize("name", LOCKING)
def test_two_jobs_without_flock(chain, chance, tmp_path, name):
    trial, fault = Trial(chain, name, tmp_path), NoLocks(chance.choice(ERRORS))
    for running in [trial.start(fault), trial.start(fault)]:
        trial.require_finished(running.ended())


@pytest.mark.parametrize("fault", [(), (NoLocks(errno.ENOLCK),)], ids=["flock", "no flock"])
@pytest.mark.parametrize("name", LOCKING)
def test_a_stale_lock(chain, chance, tmp_path, name, fault):
    """A killed job leaves its lock file, which says whose it is where there is no ``flock``."""
    trial = Trial(chain, name, tmp_path)
    running = trial.start(*fault)
    running.wait_for(lambda: any(not fault or path.stat().st_size for path in trial.folder.rglob(".*lock")))
    running.kill_after(0)
    running.ended()
    assert any(trial.folder.rglob(".*lock"))
    trial.require_finished(trial.run(*fault))


@pytest.mark.parametrize("name", STAGES)
def test_the_clock_is_moved_back(chain, chance, tmp_path, name):
    """All that is there seems to come from the future."""
    trial = Trial(chain, name, tmp_path, old=bool(chain.stages[name].other) and chance.random() < 0.5)
    for path in trial.folder.rglob("*"):
        about = path.stat()
        os.utime(path, (about.st_atime + DAY, about.st_mtime + DAY))
    trial.require_finished(trial.run(ClockMoved(-chance.uniform(0, DAY))))
