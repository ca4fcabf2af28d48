"""As far as a CPU can tell: what a GPU compiles is one graph, and where nothing can be compiled, that is an error."""

from __future__ import annotations

import dataclasses
import random

import pytest
import torch

from entropy_valley.decoding import head
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.head import whole_sums
from entropy_valley.decoding.prompts import Reuse
from entropy_valley.decoding.requests import Canvas, Queue
from entropy_valley.errors import InputError
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX

MASK, EOS = 3, 2


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    remembered = head.require_compiler, head.compiled
    for function in remembered:
        function.cache_clear()
    yield
    for function in remembered:
        function.cache_clear()


@pytest.fixture
def graphs(monkeypatch):
    """The graphs that are compiled, by a backend that needs no compiler; options are inductor's alone."""
    compiled, compile_ = [], torch.compile

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    def counted(function, dynamic=None, options=None, fullgraph=True):
        return compile_(function, dynamic=dynamic, backend=backend, fullgraph=True)

    monkeypatch.setattr(torch, "compile", counted)
    return compiled


# The real vocabularies are multiples of 64, and are reduced by another branch than 1,000 is.
@pytest.mark.parametrize("vocabulary", [1000, 1920])
@pytest.mark.parametrize(
    ("function", "given"),
    [
        (head._part, lambda logits: (logits.clone(), 0, MASK, EOS)),
        (head._divergence_part, lambda logits: (logits.clone(), logits.flip(0), MASK)),
    ],
    ids=["entropy", "sig"],
)
@torch.inference_mode()
def test_one_graph_serves_all_numbers_of_rows(function, given, vocabulary, graphs, monkeypatch):
    monkeypatch.setattr(head, "require_compiler", lambda device: None)
    compiled = head.compiled(function, "cuda")
    for rows in (*range(4, 14), 37, 65):
        logits = torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(rows))
        for column, expected in zip(compiled(*given(logits)), function(*given(logits)), strict=True):
            torch.testing.assert_close(column, expected)
    assert len(graphs) == 1


@pytest.mark.parametrize("attention", [BOTH_WAYS, PREFIX])
def test_one_graph_serves_all_layers_and_passes(attention, llada):
    """Through the real compiler; a canvas longer than a pass is not compiled. Nothing of the model stays changed."""
    backbone = dataclasses.replace(llada, attention=attention)
    draw, canvases = random.Random(5), []
    for length in (1, 2, 5, 9, 9, 20, 33, 120):
        canvases.append(
            Canvas([draw.randrange(60) for _ in range(draw.randint(4, 20))], length, reuse=Reuse(is_source=length == 9))
        )
    eager = dict(Engine(backbone, fill=96).run(Queue(enumerate(canvases))))
    head.require_compiler("cpu")
    torch._dynamo.utils.counters.clear()
    compiled = dict(Engine(backbone, fill=96, compile_layers=True).run(Queue(enumerate(canvases))))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    for place, read in eager.items():
        assert compiled[place].tokens == read.tokens
        assert compiled[place].entropies == pytest.approx(read.entropies, abs=1e-4)
    assert dict(Engine(backbone, fill=96).run(Queue(enumerate(canvases)))) == eager
    assert compiled[7] == eager[7] and compiled != eager


def test_padded_passes_have_a_kernel_of_their_own(graphs, monkeypatch):
    """Its blocks are chosen by the first call's rows, which must be those of a padded pass."""
    monkeypatch.setattr(head, "require_compiler", lambda device: None)
    compiled = head.compiled(torch.Tensor.exp, "cuda")
    for padded, expected in ((False, 1), (True, 2), (False, 2), (True, 2)):
        with whole_sums(padded):
            compiled(torch.ones(3 + padded, 2))
        assert len(graphs) == expected


def test_without_a_compiler_a_gpu_decodes_nothing(monkeypatch):
    """Uncompiled, the last bits would be others under the same name in the store."""
    ones = torch.ones
    monkeypatch.setattr(torch, "ones", lambda size, device: ones(size))

    def broken(function, **options):
        def run(*arguments):
            raise RuntimeError("Failed to find C compiler.\nPlease specify via CC")

        return run

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(InputError, match=r"RuntimeError: Failed to find C compiler\.\).*Python\.h"):
        head.compiled(len, "cuda")


def test_a_cpu_compiles_nothing(monkeypatch):
    monkeypatch.setattr(torch, "compile", None)
    assert head.compiled(len, "cpu") is len
