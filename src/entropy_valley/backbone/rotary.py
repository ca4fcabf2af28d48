"""Rotary embedding from tables with angles in full float32; optionally q and k are rotated in float32 too, as LLaDA
does."""

from __future__ import annotations

from typing import Any

import torch


def exact(rotary: type[torch.nn.Module], float32: bool) -> type[torch.nn.Module]:
    """A stock rotary embedding class that looks cos and sin up in tables of all positions.

    The stock class computes angles by a matrix product in every pass. In training this would run in TF32 on a GPU,
    where inverse frequencies keep ten bits: errors up to 0.16 rad at position 1,000, and other angles than in decoding.
    The tables are made once for the context, by plain multiplication in float32, and have the bits that the stock class
    has in full precision. With ``float32`` they stay float32, so q and k are rotated in float32 and not in the dtype of
    the states. The attentions of :mod:`.attention` cast them back.
    """

    class Exact(rotary):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            self._tables: dict[tuple[torch.device, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = {}

        def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            kind, rows = (x.device, torch.float32 if float32 else x.dtype), position_ids.shape[1]
            # A sequence too long for the context is not refused here; its positions are below the number of rows.
            if kind not in self._tables or len(self._tables[kind][0]) < rows:
                count = max(self.config.max_position_embeddings, 1 << (rows - 1).bit_length())
                self._tables[kind] = self._computed(*kind, count)
            cos, sin = self._tables[kind]
            return cos[position_ids], sin[position_ids]

        @torch.no_grad()
        def _computed(self, device: torch.device, dtype: torch.dtype, count: int) -> tuple[torch.Tensor, torch.Tensor]:
            """cos and sin of the first ``count`` positions, each (positions, head width)."""
            positions = torch.arange(count, dtype=torch.float32, device=device)
            angles = positions[:, None] * self.inv_freq.to(device, torch.float32)
            angles = torch.cat((angles, angles), dim=-1)
            cos, sin = (function(angles) * self.attention_scaling for function in (torch.cos, torch.sin))
            return cos.to(dtype), sin.to(dtype)

    return Exact
