"""Rotary embedding with angles in full float32; optionally q and k are rotated in float32 too, as LLaDA does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


def exact(rotary: type[torch.nn.Module], float32: bool) -> type[torch.nn.Module]:
    """A stock rotary embedding class that computes its angles in full float32, whatever the matmul precision is.

    The stock class computes angles by a matrix product. In training this would run in TF32 on a GPU, where inverse
    frequencies keep ten bits: errors up to 0.16 rad at position 1,000, and other angles than in decoding. With
    ``float32`` cos and sin stay float32 too, so q and k are rotated in float32 and not in the dtype of the states. The
    attentions of :mod:`.attention` cast them back.
    """

    class Exact(rotary):
        def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            with _full_precision():
                return super().forward(x.new_empty(0, dtype=torch.float32) if float32 else x, position_ids)

    return Exact


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
