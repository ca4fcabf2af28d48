"""The GPU's road as far as a CPU can walk it: what the kernel is given, and a whole pass on tensors without data."""

from __future__ import annotations

import inspect
import itertools

import pytest
import torch
from test_packing import MODELS
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention.varlen import varlen_attn

from entropy_valley.decoding import head
from entropy_valley.decoding.head import Head
from entropy_valley.model import attention
from entropy_valley.model.attention import Packed, Rows, pack
from entropy_valley.model.families import FAMILIES, STOCK_FIELDS, find_family
from entropy_valley.model.load import empty_model

OPTIONS = inspect.signature(varlen_attn).parameters
SEQUENCES, PLACES, COUNTS = [[1, 2, 3, 4, 5], [6, 7, 8], [9, 10, 11]], [1, 3, 4, 6, 9, 10], (3, 1, 2)


def plain(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options):
    """What torch documents of its kernel, in plain matrix products."""
    signature = inspect.signature(varlen_attn)
    given = signature.bind(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options).arguments
    assert cu_seq_q.dtype == cu_seq_k.dtype == torch.int32 and given["window_size"] in ((-1, -1), (-1, 0))
    assert given.get("scale") is None  # the square root of the width, as in products on a CPU
    groups = query.shape[1] // key.shape[1]
    assert given.get("enable_gqa", groups > 1) == (groups > 1)  # torch 2.11 has no such argument
    if max_q == 1 and groups > 1:  # FlashAttention 2: the groups become queries, as many for each sequence
        query.reshape(len(cu_seq_q) - 1, key.shape[1], groups, -1)
    pieces, cuts = [], (itertools.pairwise(bounds.tolist()) for bounds in (cu_seq_q, cu_seq_k))
    for (first, stop), (first_key, stop_key) in zip(*cuts, strict=True):
        assert stop - first <= max_q and stop_key - first_key <= max_k
        keys, values = (tensor[first_key:stop_key].repeat_interleave(groups, 1) for tensor in (key, value))
        scores = torch.einsum("qhd,khd->hqk", query[first:stop], keys) * query.shape[-1] ** -0.5
        if given["window_size"] == (-1, 0):
            ahead = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1 + scores.shape[2] - scores.shape[1])
            scores = scores.masked_fill(ahead, float("-inf"))
        pieces.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), values))
    return torch.cat(pieces)


@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize(
    "rows",
    [None, Rows(torch.tensor(PLACES), COUNTS), Rows(torch.tensor([4, 9]), (1, 0, 1))],
    ids=["all", "read", "one or none"],
)
@torch.inference_mode()
def test_the_kernel_is_asked_for_the_same_attention(name, rows, monkeypatch):
    packed = pack(SEQUENCES)
    expected = MODELS[name].hidden_states(packed, rows)
    monkeypatch.setattr(attention, "has_kernel", lambda query: True)
    monkeypatch.setattr(attention, "_kernel", lambda: (plain, OPTIONS))
    torch.testing.assert_close(MODELS[name].hidden_states(packed, rows), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["llada", "dream"])
@torch.inference_mode()
def test_a_pass_in_half_precision_goes_through_the_real_kernel(name, monkeypatch):
    """On tensors without data: the kernel's own checks of shapes, for every layer, and what the head makes of it."""
    monkeypatch.setattr(attention, "has_kernel", lambda query: query.dtype == torch.bfloat16)
    monkeypatch.setattr(head, "BLOCK", {"cpu": head.BLOCK["cuda"]})
    calls = []
    kernel, options = attention._kernel()

    def counting(*given, **how):
        calls.append(1)
        return kernel(*given, **how)

    monkeypatch.setattr(attention, "_kernel", lambda: (counting, options))
    config = MODELS[name].config
    empty = empty_model(find_family(name), {key: getattr(config, key) for key in STOCK_FIELDS}, torch.bfloat16).eval()
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = empty.to_empty(device="cpu")
        ids, places = torch.zeros(1, 11, dtype=torch.long), torch.zeros(6, dtype=torch.long)
        states = model.hidden_states(Packed(ids, ids, (5, 3, 3)), Rows(places, COUNTS))
        values = head.slot_values(Head(model.lm_head), states, mask_id=3, eos_id=2)
    assert (states.dtype, states.shape) == (torch.bfloat16, (6, config.hidden_size))
    assert [len(column) for column in values] == [6] * 4
    assert [column.dtype for column in values] == [torch.int64, *[torch.float64] * 3]
    assert len(calls) == config.num_hidden_layers


@pytest.mark.parametrize(
    ("device", "dtype", "capability", "expected"),
    [("cuda", torch.bfloat16, (8, 0), True), ("cuda", torch.bfloat16, (7, 5), False),
     ("cuda", torch.float32, (9, 0), False), ("cpu", torch.bfloat16, None, False)],
)  # fmt: skip
def test_the_kernel_is_for_half_precision_on_ampere_and_later(device, dtype, capability, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert attention.has_kernel(torch.empty(3, dtype=dtype, device=device)) == expected
