"""What a pass of the 8B model holds at most, counted on tensors that have sizes but no data."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from entropy_valley.decoding import head
from entropy_valley.decoding.engine import BUDGET
from entropy_valley.decoding.head import Head
from entropy_valley.model import attention
from entropy_valley.model.attention import Packed, Rows
from entropy_valley.model.families import find_family
from entropy_valley.model.load import empty_model
from entropy_valley.model.size import Size

LLADA = find_family("llada")
CONFIG = LLADA.releases[0].config | {"tie_word_embeddings": False}
SMALL = CONFIG | {"num_hidden_layers": 4}
GPU = 24e9


def product(states, weight):
    """What a GPU holds of the head's product: its float32 result, and no float32 weights."""
    return states.new_empty(len(states), len(weight), dtype=torch.float32)


def peak(budget, monkeypatch):
    """Bytes of weights and everything else that one pass of all-mask canvases (40 tokens, 16 of them masked) holds."""
    from torch.distributed._tools.mem_tracker import MemTracker  # it loads the compiler

    monkeypatch.setattr(attention, "has_kernel", lambda query: True)
    monkeypatch.setitem(head.BLOCK, "cpu", head.BLOCK["cuda"])
    monkeypatch.setattr(head, "float32_product", product)
    count = budget // 40
    empty = empty_model(LLADA, SMALL, torch.bfloat16).eval()
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        model = empty.to_empty(device="cpu")
        tracker = MemTracker()
        tracker.track_external(model)
        with tracker:
            ids = torch.zeros(1, 40 * count, dtype=torch.long)
            rows = Rows(torch.zeros(16 * count, dtype=torch.long), (16,) * count)
            states = model.hidden_states(Packed(ids, ids, (40,) * count), rows)
            head.slot_values(Head(model.lm_head, float32=True), states, mask_id=126336, eos_id=126081)
    (snapshot,) = tracker.get_tracker_snapshot("peak").values()
    return snapshot["Total"]


def test_the_8b_model_decodes_on_24_gb_even_at_full_budget(monkeypatch):
    # A pass holds as much beside the weights whatever the number of layers is: four stand for all.
    size, small = Size.of(CONFIG), Size.of(SMALL)
    held = peak(BUDGET["cuda"], monkeypatch) + 2 * (size.parameters - small.parameters)
    assert 2 * 8.015e9 < held < 18.5e9 < GPU
    # What `entropy-valley check` expects.
    assert held < size.parameters * 2 + size.pass_bytes(BUDGET["cuda"], item=2) < 1.05 * held
