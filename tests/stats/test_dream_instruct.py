"""Losses of a training, and outputs that are empty: what the table of the instruction-tuned backbone says."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.experiment.tables.dream_instruct import describe, summarise_losses


def test_last_ten_steps_and_first_minimum():
    losses = [1.0, 30.0, *[4.0, 6.0] * 5]
    summary = summarise_losses(pd.Series(losses, range(5, 5 + len(losses))))
    assert summary == {
        **{"final": 6.0, "last_mean": 5.0, "last_std": pytest.approx(math.sqrt(10 / 9))},
        **{"minimum": 1.0, "minimum_step": 5},
    }


@given(st.lists(st.floats(0, 50), min_size=1, max_size=40))
def test_the_minimum_is_below_all(losses):
    summary = summarise_losses(pd.Series(losses, range(1, len(losses) + 1)))
    assert summary["minimum"] <= min(summary["final"], summary["last_mean"] + 1e-9)
    assert losses[summary["minimum_step"] - 1] == summary["minimum"]


def test_outputs_worked_by_hand():
    texts = ["", "....", " \n", "词语", "ab c"]
    assert describe(pd.Series(texts)) == {
        "sentences": 5,
        "empty_rate": 2 / 5,
        "mean_characters": (0 + 4 + 2 + 2 + 4) / 5,
    }
