"""The last layer computed only on the rows that are read: the other rows give it keys and values alone.

Transformers runs the stock layers as usual. The last one is a subclass that takes the rows to compute.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import pad
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, rotate_half
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer

from entropy_valley.backbone.attention import BIDIRECTIONAL, Segments

FULL_KERNEL = 4  # rows: with fewer, a CPU's BLAS takes another path, which rounds differently


class _Narrowing:
    def forward(
        self,
        hidden_states: torch.Tensor,
        *rest: Any,
        rows: torch.Tensor | None = None,
        reading: Segments | None = None,
        **options: Any,
    ) -> torch.Tensor:
        """The stock layer's output, (1, rows, width); with ``rows``, only theirs.

        With ``reading``, only its queries, which are ``rows``, attend. Without it all rows attend, and the layer then
        continues with ``rows``.
        """
        if rows is None:
            return super().forward(hidden_states, *rest, **options)
        count = len(rows)
        rows = torch.cat([rows, rows[-1:].expand(max(0, FULL_KERNEL - count))])
        normed, rotation = self.input_layernorm(hidden_states), options["position_embeddings"]
        if reading is None:
            attended = self._attend(normed, rotation, slice(None), options["segments"])[:, rows]
        else:
            attended = pad(self._attend(normed, rotation, rows, reading), (0, 0, 0, len(rows) - count))
        states = hidden_states[:, rows] + self.self_attn.o_proj(attended)
        return (states + self.mlp(self.post_attention_layernorm(states)))[:, :count]

    def _attend(
        self,
        states: torch.Tensor,
        rotation: tuple[torch.Tensor, torch.Tensor],
        rows: torch.Tensor | slice,
        reading: Segments,
    ) -> torch.Tensor:
        attention = self.self_attn
        query, key, value = (
            projection(inputs).unflatten(-1, (-1, attention.head_dim)).transpose(1, 2)
            for projection, inputs in (
                (attention.q_proj, states[:, rows]),
                (attention.k_proj, states),
                (attention.v_proj, states),
            )
        )
        cos, sin = (angles.unsqueeze(1) for angles in rotation)
        query = (query * cos[:, :, rows] + rotate_half(query) * sin[:, :, rows])[:, :, : sum(reading.queries)]
        key = key * cos + rotate_half(key) * sin
        attend = ALL_ATTENTION_FUNCTIONS[BIDIRECTIONAL]
        attended, _ = attend(attention, query, key, value, None, scaling=attention.scaling, segments=reading)
        return attended.flatten(2)


class _NarrowingLlama(_Narrowing, LlamaDecoderLayer):
    pass


class _NarrowingQwen2(_Narrowing, Qwen2DecoderLayer):
    pass


_NARROWING = {LlamaDecoderLayer: _NarrowingLlama, Qwen2DecoderLayer: _NarrowingQwen2}


def narrow(model: Any) -> None:
    """Let the last layer of a bidirectional stock ``…ForCausalLM`` skip the rows that are not read.

    A layer of a class that is not listed here does not change.
    """
    last = model.model.layers[-1]
    if model.config._attn_implementation == BIDIRECTIONAL:
        # Only the class changes: a new layer would draw random weights a second time.
        last.__class__ = _NARROWING.get(type(last), type(last))


def reads_rows(model: Any) -> bool:
    """Whether the last layer takes ``rows``."""
    return isinstance(model.model.layers[-1], _Narrowing)
