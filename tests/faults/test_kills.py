"""SIGKILL at any moment: no result is torn or lost, and the next run makes what an undisturbed one would have made."""

from __future__ import annotations

import pytest
from faults import KilledBefore, NoMoreThan
from stages import stages
from trial import Trial

pytestmark = pytest.mark.faults
STAGES = list(stages())
REPLACED = [name for name, stage in stages().items() if stage.other]


def require_recovery(trial, fault):
    """It is killed by the fault, leaves whole results, and the next run finishes."""
    outcome = trial.run(fault)
    assert outcome.killed, outcome.said
    trial.require_old_or_new()
    trial.require_finished(trial.run())


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", STAGES)
def test_killed_before_an_operation_on_files(chain, chance, tmp_path, name, number):
    trial = Trial(chain, name, tmp_path)
    require_recovery(trial, KilledBefore(trial.killed_at(chance.random())))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", REPLACED)
def test_killed_while_it_replaces_results(chain, chance, tmp_path, name, number):
    trial = Trial(chain, name, tmp_path, old=True)
    require_recovery(trial, KilledBefore(trial.killed_at(chance.random(), old=True)))


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("name", STAGES)
def test_killed_in_the_middle_of_a_write(chain, chance, tmp_path, name, number):
    trial = Trial(chain, name, tmp_path)
    require_recovery(trial, NoMoreThan(trial.size(chance), killed=True))


@pytest.mark.parametrize("name", STAGES)
def test_killed_again_and_again(chain, chance, tmp_path, name):
    """At moments of the clock, up to four times, and resumed each time."""
    trial = Trial(chain, name, tmp_path)
    for _ in range(4):
        running = trial.start()
        running.kill_after(chance.uniform(0, chain.seconds[name]))
        running.ended()
        trial.require_old_or_new()
    trial.require_finished(trial.run())
