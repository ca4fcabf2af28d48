"""A bit flips, or a file is cut: the job does its work again, or one line names the file; nothing else is touched."""

from __future__ import annotations

import shutil

import pytest
from faults import KilledBefore
from stages import stages
from trial import Trial, damage

pytestmark = pytest.mark.faults
STAGES = stages()
RESULTS = [name for name, stage in STAGES.items() if stage.other]
FOLLOWING = [name for name, stage in STAGES.items() if stage.needs]
RESUMED = ["corpora", "pretrain", "train", "translate", "score"]


def files_of(folder, *parts):
    """The files below these parts of a folder that are not empty."""
    found = [path for part in parts for path in sorted((folder / part).rglob("*")) if path.is_file()]
    return [path for path in found if path.stat().st_size]


def noticed(trial, outcome, damaged, done):
    """One error that names the damaged file, or what it stands beside; or the same results as without the damage."""
    if outcome.status:
        assert str(damaged.relative_to(trial.folder).parent) in outcome.error, f"{done}: {outcome.said}"
        return True
    return False


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("name", RESULTS)
def test_a_damaged_result_is_made_again(chain, chance, tmp_path, name, number):
    """As after `audit --repair`, or with --force: the job runs over its own damaged result."""
    trial = Trial(chain, name, tmp_path)
    assert trial.run().status == 0
    written = [trial.folder / path for path in trial.after if path not in trial.before]
    path = chance.choice(written)
    done = damage(path, chance)
    outcome = trial.run()
    if noticed(trial, outcome, path, done):
        path.unlink()
        outcome = trial.run()
    trial.require_finished(outcome)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", FOLLOWING)
def test_a_damaged_input_is_refused(chain, chance, tmp_path, name, number):
    """What an earlier job of the chain has made, and its record."""
    trial = Trial(chain, name, tmp_path)
    path = chance.choice([trial.folder / name for name in trial.before])
    done = damage(path, chance)
    outcome = trial.run()
    if not noticed(trial, outcome, path, done):
        assert outcome.status == 0
        made = {name for name in trial.after if name not in trial.before}
        now = {name: (trial.folder / name).read_bytes() for name in made}
        assert now == {name: trial.after[name] for name in made}, f"{done}: unnoticed"


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", RESUMED)
def test_damage_while_a_killed_job_waits(chain, chance, tmp_path, name, number):
    """To its checkpoints, its shard of the store, or what it has left for another job."""
    trial = Trial(chain, name, tmp_path)
    assert trial.run(KilledBefore(trial.killed_at(chance.uniform(0.5, 1)))).killed
    waiting = files_of(trial.folder, "work", "store", "own")
    outcome = None
    if waiting:
        path = chance.choice(waiting)
        done = damage(path, chance)
        outcome = trial.run()
        if noticed(trial, outcome, path, done):
            shutil.rmtree(trial.folder / path.relative_to(trial.folder).parts[0])
            outcome = None
    trial.require_finished(outcome or trial.run())
