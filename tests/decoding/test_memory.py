"""What a pass of a released model holds at most, counted on tensors that have sizes but no data."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from entropy_valley.decoding import head
from entropy_valley.decoding.engine import BUDGET
from entropy_valley.decoding.head import Head
from entropy_valley.experiment.checking.size import Size
from entropy_valley.model import attention
from entropy_valley.model.attention import Packed, Rows
from entropy_valley.model.families import find_family
from entropy_valley.model.load import empty_model

GPU = {"llada": 24e9, "a2d_qwen3": 8e9}


def product(states, weight):
    """What a GPU holds of the head's product: its float32 result, and no float32 weights."""
    return states.new_empty(len(states), len(weight), dtype=torch.float32)


def peak(family, config, budget, monkeypatch):
    """Bytes of weights and everything else that one pass of all-mask canvases (40 tokens, 16 of them masked) holds."""
    from torch.distributed._tools.mem_tracker import MemTracker  # it loads the compiler

    monkeypatch.setattr(attention, "has_kernel", lambda query: True)
    monkeypatch.setitem(head.BLOCK, "cpu", head.BLOCK["cuda"])
    monkeypatch.setattr(head, "float32_product", product)
    count = budget // 40
    empty = empty_model(family, config, torch.bfloat16).eval()
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        model = empty.to_empty(device="cpu")
        model.tie()  # which `to_empty` undoes
        tracker = MemTracker()
        tracker.track_external(model)
        with tracker:
            ids = torch.zeros(1, 40 * count, dtype=torch.long)
            rows = Rows(torch.zeros(16 * count, dtype=torch.long), (16,) * count)
            states = model.hidden_states(Packed(ids, ids, (40,) * count), rows)
            head.slot_values(
                Head(model.lm_head, float32=True), states, mask_id=family.releases[0].ids["mask"], eos_id=0
            )
    (snapshot,) = tracker.get_tracker_snapshot("peak").values()
    return snapshot["Total"]


@pytest.mark.parametrize("name", GPU)
def test_a_released_model_decodes_even_at_full_budget(name, monkeypatch):
    """The 8B model on a card of 24 GB; Qwen3-0.6B, whose heads are wider than its states and whose head is tied, on one
    of 8 GB."""
    # A pass holds as much beside the weights whatever the number of layers is: four stand for all.
    family = find_family(name)
    config = {"tie_word_embeddings": False, **family.releases[0].config}
    small = config | {"num_hidden_layers": 4}
    size, smaller = Size.of(config), Size.of(small)
    held = peak(family, small, BUDGET["cuda"], monkeypatch) + 2 * (size.parameters - smaller.parameters)
    assert 2 * size.parameters < held < GPU[name]
    # What `entropy-valley check` expects.
    assert held < size.parameters * 2 + size.pass_bytes(BUDGET["cuda"], item=2) < 1.1 * held
