"""SIG against its definition, where that can be computed, and where only the exact answer can."""

from __future__ import annotations

import math

import pytest
import torch

from entropy_valley.decoding import head as head_module
from entropy_valley.decoding.head import Head, slot_values, sourced_values

MASK, EOS = 7, 2


@pytest.fixture(params=[None, (512, 4096), (9, 30), (50, 7), (50, 1)], ids=str)
def block(request, monkeypatch):
    """The rows and vocabulary entries held at once: as they are, all, several of both, single ones."""
    if request.param:
        monkeypatch.setitem(head_module.BLOCK, "cpu", request.param)


def logits_as_states(*rows):
    """A head that gives each row as its logits, behind it a mask token that would win."""
    states = torch.tensor([[*row, 99.0] for row in rows])
    head = torch.nn.Linear(states.shape[1], states.shape[1], bias=False)
    head.weight.data = torch.eye(states.shape[1])
    return head, states, states.shape[1] - 1


def sig_of(own, other, backward=False):
    head, states, mask = logits_as_states(*own, *other)
    own, other = states.tensor_split(2)
    return sourced_values(Head(head), own, other, *every(own), mask, 0, backward)[1]


def random_pair(scale, rows=50, vocabulary=100):
    generator = torch.Generator().manual_seed(0)
    head = torch.nn.Linear(16, vocabulary, bias=False)
    head.weight.data = torch.randn(vocabulary, 16, generator=generator) * scale
    states = torch.randn(2 * rows, 16, generator=generator)
    return head, *states.tensor_split(2)


def every(states):
    """All rows are compared, no others are there."""
    return torch.arange(len(states)), torch.arange(0)


@torch.inference_mode()
def test_by_hand(block):
    """(1/2, 1/2) against (1/4, 3/4): ½ log 2 + ½ log 2/3; turned around, ¼ log ½ + ¾ log 3/2. The mask has no part."""
    halves, quarters = [[0.0, 0.0]], [[0.0, math.log(3)]]
    assert sig_of(halves, quarters).item() == pytest.approx(math.log(4 / 3) / 2, rel=1e-6)
    backward = math.log(1 / 2) / 4 + 3 * math.log(3 / 2) / 4
    assert sig_of(halves, quarters, backward=True).item() == pytest.approx(backward, rel=1e-6)
    assert sig_of(quarters, quarters).item() == 0


@pytest.mark.parametrize("scale", [0.01, 1, 5, 30])
@torch.inference_mode()
def test_it_is_the_divergence_of_two_float64_softmaxes(scale, block):
    head, own, other = random_pair(scale)
    p, q = (torch.cat([part for _, part in Head(head).blocks(states)], 1).double() for states in (own, other))
    p, q = (torch.cat([z[:, :MASK], z[:, MASK + 1 :]], 1).log_softmax(-1) for z in (p, q))
    for backward, (one, two) in enumerate([(p, q), (q, p)]):
        values, sigs = sourced_values(Head(head), own, other, *every(own), MASK, EOS, bool(backward))
        torch.testing.assert_close(sigs, (one.exp() * (one - two)).sum(-1), rtol=1e-9, atol=1e-13)
        assert all(map(torch.equal, values, slot_values(Head(head), own, MASK, EOS)))


@torch.inference_mode()
def test_nearly_equal_distributions_keep_their_difference(block):
    """Four equal logits, one of them raised by d: log((3 + e^d) / 4) - d / 4 = 3 d² / 32 + O(d³)."""
    steps = [2.0**-10, 2.0**-20, 2.0**-21, 2.0**-22]
    sigs = sig_of([[0.0] * 4] * 4, [[0.0, 0.0, step, 0.0] for step in steps])
    expected = torch.tensor([3 * step**2 / 32 for step in steps], dtype=torch.float64)
    torch.testing.assert_close(sigs, expected, rtol=1e-3, atol=0)
    assert (sigs.diff() < 0).all()


@torch.inference_mode()
def test_distributions_that_share_nothing_stay_finite(block):
    """All mass on one token, e^-800 of it on the other: 800 nats, and 3e4."""
    for gap in (800.0, 3e4):
        sigs = sig_of([[gap, 0.0, 0.0]], [[0.0, gap, 0.0]])
        assert sigs.item() == pytest.approx(gap)


@torch.inference_mode()
def test_neither_chunks_nor_neighbours_change_a_row(monkeypatch):
    head, own, other = random_pair(2, rows=300)
    monkeypatch.setitem(head_module.BLOCK, "cpu", (512, 30))
    whole = sourced_values(Head(head), own, other, *every(own), MASK, EOS)[1]
    alone = [
        sourced_values(Head(head), own[[row]], other[[row]], *every(own[[row]]), MASK, EOS)[1] for row in (0, 150, 299)
    ]
    assert torch.equal(whole[[0, 150, 299]], torch.cat(alone))
    monkeypatch.setitem(head_module.BLOCK, "cpu", (4, 30))
    assert torch.equal(whole, sourced_values(Head(head), own, other, *every(own), MASK, EOS)[1])


@torch.inference_mode()
def test_rows_that_are_not_compared_have_values_and_no_sig():
    head, own, other = random_pair(2)
    places = torch.arange(50)
    paired, others = places[places % 3 == 1], places[places % 3 != 1]
    values, sigs = sourced_values(Head(head), own, other[paired], paired, others, MASK, EOS)
    assert all(map(torch.equal, values, slot_values(Head(head), own, MASK, EOS)))
    assert torch.equal(sigs[paired], sourced_values(Head(head), own, other, *every(own), MASK, EOS)[1][paired])
    assert sigs[others].isnan().all()


@torch.inference_mode()
def test_a_gpu_compares_the_logits_in_one_graph():
    """As far as a CPU can tell: the comparison is traced whole, for any number of rows, and gives the same."""
    compiled = torch.compile(head_module._divergence_part, dynamic=True, fullgraph=True, backend="aot_eager")
    for rows in (5, 9):
        p, q = torch.randn(2, rows, 40)
        for column, expected in zip(compiled(p, q, 2), head_module._divergence_part(p, q, 2), strict=True):
            torch.testing.assert_close(column, expected)
