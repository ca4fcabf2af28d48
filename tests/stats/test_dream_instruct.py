"""Losses of a training, and outputs that are empty: what the table of the instruction-tuned backbone says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.errors import InputError
from entropy_valley.tables.dream_instruct import describe, read_losses, summarise_losses, uniform_cross_entropy


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


def test_reads_the_wanted_columns(tmp_path):
    path = tmp_path / "losses.csv"
    path.write_text("step,loss,gradient_norm,cross_entropy\n1,2.5,9,2.25\n2,1.5,9,1e-3\n")
    assert read_losses(path, ("loss", "cross_entropy")) == {
        "step": [1, 2],
        "loss": [2.5, 1.5],
        "cross_entropy": [2.25, 0.001],
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("step,cross_entropy\n1,2\n", "no loss"),
        ("step,loss\n", "no steps"),
        ("step,loss\n1,2\n2,nan\n", r"losses\.csv:3: loss is 'nan'"),
        ("step,loss\n1,many\n", "loss is 'many'"),
        ("step,loss\n1,2\n2\n", r"losses\.csv:3: loss is None"),
    ],
)
def test_a_broken_file_is_named(tmp_path, text, problem):
    (tmp_path / "losses.csv").write_text(text)
    with pytest.raises(InputError, match=problem):
        read_losses(tmp_path / "losses.csv", ("loss",))


def test_outputs_worked_by_hand():
    texts = ["", "....", " \n", "词语", "ab c"]
    assert describe(texts) == {"sentences": 5, "empty_rate": 2 / 5, "mean_characters": (0 + 4 + 2 + 2 + 4) / 5}


@given(st.lists(st.text(max_size=5), min_size=1, max_size=20), st.integers(1, 20))
def test_another_empty_output_moves_both(texts, more):
    emptier, before = describe(texts + [""] * more), describe(texts)
    assert emptier["empty_rate"] >= before["empty_rate"]
    assert emptier["mean_characters"] <= before["mean_characters"]
