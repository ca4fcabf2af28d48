"""The GPU's road as far as a CPU can walk it: what the kernel is given, and a whole pass on tensors without data."""

import inspect
import itertools

import pytest
import torch
from test_packing import MODELS
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention.varlen import varlen_attn

from entropy_valley.model import attention
from entropy_valley.model.attention import Rows, pack
from entropy_valley.model.families import FAMILIES

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


@pytest.mark.parametrize(
    ("device", "dtype", "capability", "expected"),
    [("cuda", torch.bfloat16, (8, 0), True), ("cuda", torch.bfloat16, (7, 5), False),
     ("cuda", torch.float32, (9, 0), False), ("cpu", torch.bfloat16, None, False)],
)  # fmt: skip
def test_the_kernel_is_for_half_precision_on_ampere_and_later(device, dtype, capability, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert attention.has_kernel(torch.empty(3, dtype=dtype, device=device)) == expected
