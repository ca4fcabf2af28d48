"""Losses of a training, and outputs that are empty: what the table of the instruction-tuned backbone says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.tables.dream_instruct import describe, summarise_losses, uniform_cross_entropy


def test_last_ten_steps_and_first_minimum():
    losses = [1.0, 30.0, *[4.0, 6.0] * 5]
    summary = summarise_losses(range(5, 5 + len(losses)), losses)
    assert summary == {
        **{"final": 6.0, "last_mean": 5.0, "last_std": pytest.approx(math.sqrt(10 / 9))},
        **{"minimum": 1.0, "minimum_step": 5},
    }


def test_fewer_steps_than_ten_are_all_averaged_and_the_first_of_equal_minima_counts():
    summary = summarise_losses([1, 2, 3], [3.0, 2.0, 2.0])
    assert summary["last_mean"] == pytest.approx(7 / 3)
    assert summary["last_std"] == pytest.approx(math.sqrt(1 / 3))
    assert summary["minimum_step"] == 2


def test_one_step_has_no_deviation():
    assert math.isnan(summarise_losses([1], [2.5])["last_std"])


def test_the_papers_uniform_guess():
    assert uniform_cross_entropy(152_064) == pytest.approx(11.93, abs=0.005)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=40))
def test_the_minimum_is_below_all(losses):
    summary = summarise_losses(list(range(1, len(losses) + 1)), losses)
    assert summary["minimum"] <= min(summary["final"], summary["last_mean"] + 1e-9)
    assert losses[summary["minimum_step"] - 1] == summary["minimum"]


def test_outputs_worked_by_hand():
    texts = ["", "....", " \n", "词语", "ab c"]
    assert describe(texts) == {"sentences": 5, "empty_rate": 2 / 5, "mean_characters": (0 + 4 + 2 + 2 + 4) / 5}


@given(st.lists(st.text(max_size=5), min_size=1, max_size=20), st.integers(1, 20))
def test_another_empty_output_moves_both(texts, more):
    emptier, before = describe(texts + [""] * more), describe(texts)
    assert emptier["empty_rate"] >= before["empty_rate"]
    assert emptier["mean_characters"] <= before["mean_characters"]
