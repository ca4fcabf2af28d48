"""What a training tells while it runs."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from types import SimpleNamespace

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from entropy_valley.errors import InputError
from entropy_valley.training.log import reports

STEP = {"loss": 2.0, "cross_entropy": 1.5, "learning_rate": 0.1, "gradient_norm": 3.0, "tokens": 40}


@pytest.fixture
def wandb(monkeypatch):
    """The package as far as it is used: what it was started with, what was logged, and whether the run was ended."""
    seen = SimpleNamespace(started={}, logged=[], ended=False)

    @contextlib.contextmanager
    def init(**settings):
        seen.started = settings
        yield SimpleNamespace(log=lambda scalars, step: seen.logged.append((step, scalars)))
        seen.ended = True

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init, __spec__=object()))
    return seen


def test_weights_and_biases_gets_what_tensorboard_gets(wandb, tmp_path):
    run = {"project": "mine", "name": "en-zh/llada-8b/seed1", "id": "a1"}
    with reports(tmp_path / "logs", 2, 4, "fine-tuning", wandb=run) as report:
        for _ in range(2):
            report({**STEP})
    board = EventAccumulator(str(tmp_path / "logs")).Reload()
    names = board.Tags()["scalars"]
    assert [step for step, _ in wandb.logged] == [3, 4] and wandb.ended
    for place, (step, scalars) in enumerate(wandb.logged):
        assert sorted(scalars) == sorted(names) == sorted({*STEP, "tokens_per_second"} - {"tokens"})
        for name in names:
            event = board.Scalars(name)[place]
            assert (event.step, event.value) == (step, pytest.approx(scalars[name]))
    folder = tmp_path / "logs"
    assert wandb.started == {**run, "dir": folder, "resume": "allow"}


def test_the_speed_of_a_resumed_training_is_that_of_its_own_steps(tmp_path, capsys):
    with reports(tmp_path, 5000, 6000, "fine-tuning", every=100) as report:
        time.sleep(0.5)  # a step of half a second: two in a second, not ten thousand
        report({**STEP})
    first, *_ = capsys.readouterr().err.splitlines()
    assert float(re.search(r"5001/6000 .* ([\d.]+)step/s", first)[1]) <= 2


def test_a_package_that_is_not_there_is_said(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", None)
    problem = r"training\.wandb: the package cannot be imported .*pip install wandb"
    with pytest.raises(InputError, match=problem), reports(tmp_path, 0, 8, "fine-tuning", wandb={"project": "mine"}):
        pass
