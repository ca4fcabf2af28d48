"""What a training tells while it runs."""

import re
import time

import pytest

from entropy_valley.training.log import reports

STEP = {"loss": 2.0, "cross_entropy": 1.5, "learning_rate": 0.1, "gradient_norm": 3.0, "tokens": 40}


def test_what_tensorboard_gets(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # slow

    with reports(tmp_path / "logs", 2, 4, "fine-tuning") as report:
        for _ in range(2):
            report({**STEP})
    board = EventAccumulator(str(tmp_path / "logs")).Reload()
    names = board.Tags()["scalars"]
    assert sorted(names) == sorted({*STEP, "tokens_per_second"} - {"tokens"})
    for name in {*STEP} - {"tokens"}:
        assert [(event.step, event.value) for event in board.Scalars(name)] == [
            (step, pytest.approx(STEP[name])) for step in (3, 4)
        ]


def test_the_speed_of_a_resumed_training_is_that_of_its_own_steps(tmp_path, capsys):
    with reports(tmp_path, 5000, 6000, "fine-tuning", every=100) as report:
        time.sleep(0.5)  # a step of half a second: two in a second, not ten thousand
        report({**STEP})
    first, *_ = capsys.readouterr().err.splitlines()
    assert float(re.search(r"5001/6000 .* ([\d.]+)step/s", first)[1]) <= 2
