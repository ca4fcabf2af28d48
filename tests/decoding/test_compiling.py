"""As far as a CPU can tell: what a GPU compiles are two graphs."""

from __future__ import annotations

import dataclasses
import random

import pytest
import torch

from entropy_valley.decoding.canvas import Canvas, Queue, Reuse
from entropy_valley.decoding.engine import Engine
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("attention", [BOTH_WAYS, PREFIX])
def test_two_graphs_serve_all_layers_and_passes(attention, llada):
    """Through the real compiler; a canvas longer than a pass is not compiled. Nothing of the model stays changed."""
    backbone = dataclasses.replace(llada, attention=attention)
    draw, canvases = random.Random(5), []
    for length in (1, 2, 5, 9, 9, 20, 33, 120):
        canvases.append(
            Canvas([draw.randrange(60) for _ in range(draw.randint(4, 20))], length, reuse=Reuse(is_source=length == 9))
        )
    eager = dict(Engine(backbone, fill=96).run(Queue(enumerate(canvases))))
    torch._dynamo.utils.counters.clear()
    compiled = dict(Engine(backbone, fill=96, compile_layers=True).run(Queue(enumerate(canvases))))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2  # a half each
    for place, read in eager.items():
        assert compiled[place].tokens == read.tokens
        assert compiled[place].entropies == pytest.approx(read.entropies, abs=1e-4)
    assert dict(Engine(backbone, fill=96).run(Queue(enumerate(canvases)))) == eager
    assert compiled[7] == eager[7] and compiled != eager
