"""Columns of numbers to a device and back, with as little waiting as can be.

A GPU works behind its host. A host that copies from ordinary memory, or asks for a value, waits until the GPU has done
all that was asked before. So what goes there goes from pinned memory, in one copy, and what comes back does so at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch


def upload(columns: Sequence[np.ndarray], device: torch.device) -> tuple[torch.Tensor, ...]:
    """The columns, all of one dtype, as tensors on ``device``; the host does not wait for the copy."""
    import numpy as np
    import torch

    joined = torch.from_numpy(np.concatenate(columns))
    if device.type == "cuda":
        joined = joined.pin_memory().to(device, non_blocking=True)
    return joined.split([len(column) for column in columns])


def download(columns: Sequence[torch.Tensor]) -> list[np.ndarray]:
    """The columns, numbers that float64 holds exactly, as float64; the host waits once."""
    import numpy as np
    import torch

    joined = torch.cat([column.double() for column in columns]).cpu().numpy()
    return np.split(joined, np.cumsum([len(column) for column in columns])[:-1])
