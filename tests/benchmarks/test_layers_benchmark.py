"""Other forms of a layer compute what it computes, and the shares are of all the time."""

from __future__ import annotations

import layers
import pytest
import workload
from tiny_checkpoints import one_thread  # noqa: F401 - fixture
from workload import Shape

TINY = Shape(vocabulary=60, width=32, layers=2, ffn=64, sentences=3, heads=4)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(layers, "STEPS", 4)
    return workload.make(TINY, "cpu", scale=0.3)


def test_each_form_gives_the_same_bits_on_a_cpu(tiny):
    table = layers.compare(tiny, "cpu", rounds=1, most=2)
    assert table.same_bits.all() and (table["median"] > 0).all()
    assert len(layers.recorded(tiny, 2)) <= 2 < len(layers.recorded(tiny))


def test_a_form_that_changes_a_number_is_seen(tiny, monkeypatch):
    def other(model):
        return [(layers.llama.LlamaRMSNorm, "forward", lambda self, states: states)]

    monkeypatch.setattr(layers, "FORMS", {"now": layers.FORMS["now"], "no norm": other})
    assert layers.compare(tiny, "cpu", rounds=1, most=2).same_bits.tolist() == [True, False]


def test_the_shares_are_of_the_whole_time(tiny):
    table = layers.shares(tiny, "cpu").set_index("kind")
    assert table[["operations_percent", "python_percent"]].sum().sum() == pytest.approx(100)
    kinds = {"norms", "rotary", "SwiGLU", "attention", "products of the layers", "products of the head"}
    assert kinds <= {*table.index}
    assert table.operations_a_pass["products of the layers"] == 7 * TINY.layers
