from __future__ import annotations

import numpy as np
import torch

from entropy_valley.model.attention import download, upload


def test_columns_go_to_the_device_and_back_bit_by_bit():
    one, empty, other = np.array([1, 2**40]), np.array([], dtype=np.int64), np.array([3])
    columns = upload([one, empty, other], torch.device("cpu"))
    assert [column.tolist() for column in columns] == [[1, 2**40], [], [3]]
    numbers = torch.tensor([0.1, float("nan")], dtype=torch.float64)
    back = download([*columns, numbers, torch.tensor([0.1])])
    assert [column.tolist() for column in back[:3]] == [[1, 2**40], [], [3]]
    assert back[3][0] == 0.1 and np.isnan(back[3][1]) and back[4][0] == np.float32(0.1)


def test_what_was_uploaded_does_not_change_with_its_source():
    source = np.array([1, 2])
    (column,) = upload([source], torch.device("cpu"))
    source[0] = 9
    assert column.tolist() == [1, 2]


def test_to_a_gpu_goes_one_copy_from_pinned_memory_for_which_nobody_waits(monkeypatch):
    asked = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: asked.append("pin") or tensor)
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *to, **how: asked.append((to, how)) or tensor)
    gpu = torch.device("cuda", 1)
    upload([np.array([1]), np.array([2, 3])], gpu)
    assert asked == ["pin", ((gpu,), {"non_blocking": True})]
