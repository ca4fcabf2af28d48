"""Other forms of a layer's parts, each as patches of the stock classes. None is in the package: see
docs/performance.md, "What was tried"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import transformers.models.llama.modeling_llama as llama
from torch.nn.functional import linear, rms_norm, silu
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from entropy_valley.decoding import engine
from entropy_valley.model.attention import BIDIRECTIONAL, Packed, Rows

Patch = tuple[Any, str, Callable[..., Any]]  # whose attribute, which one, and what it is instead
_MERGED: dict[tuple[torch.nn.Linear, ...], torch.Tensor] = {}


def _merged(*layers: torch.nn.Linear) -> torch.Tensor:
    if layers not in _MERGED:
        _MERGED[layers] = torch.cat([layer.weight for layer in layers])
    return _MERGED[layers]


def one_norm(model: Any) -> list[Patch]:
    def forward(self: Any, states: torch.Tensor) -> torch.Tensor:
        return rms_norm(states, self.weight.shape, self.weight, self.variance_epsilon)

    return [(llama.LlamaRMSNorm, "forward", forward)]


def swiglu_in_place(model: Any) -> list[Patch]:
    def forward(self: Any, states: torch.Tensor) -> torch.Tensor:
        return self.down_proj(silu(self.gate_proj(states), inplace=True).mul_(self.up_proj(states)))

    return [(llama.LlamaMLP, "forward", forward)]


def gate_with_up(model: Any) -> list[Patch]:
    def forward(self: Any, states: torch.Tensor) -> torch.Tensor:
        gate, up = linear(states, _merged(self.gate_proj, self.up_proj)).chunk(2, -1)
        return self.down_proj(silu(gate).mul_(up))

    return [(llama.LlamaMLP, "forward", forward)]


def _rotated(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = states.shape[-1] // 2
    rotated = states * cos
    rotated[..., :half].sub_(states[..., half:] * sin[..., :half])
    rotated[..., half:].add_(states[..., :half] * sin[..., half:])
    return rotated


def rotary_by_halves(model: Any) -> list[Patch]:
    def apply(query: torch.Tensor, key: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(_rotated(states, cos.unsqueeze(1), sin.unsqueeze(1)) for states in (query, key))

    return [(llama, "apply_rotary_pos_emb", apply)]


def qkv_as_one(model: Any) -> list[Patch]:
    def forward(
        self: Any, hidden_states: torch.Tensor, position_embeddings: Any, segments: Any, **_: Any
    ) -> tuple[torch.Tensor, None]:
        layers = self.q_proj, self.k_proj, self.v_proj
        parts = linear(hidden_states, _merged(*layers)).split([layer.out_features for layer in layers], -1)
        query, key, value = (part.unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for part in parts)
        query, key = llama.apply_rotary_pos_emb(query, key, *position_embeddings)
        attend = ALL_ATTENTION_FUNCTIONS[BIDIRECTIONAL]
        attended, _ = attend(self, query, key, value, None, scaling=self.scaling, segments=segments)
        return self.o_proj(attended.flatten(2)), None

    return [(llama.LlamaAttention, "forward", forward)]


def sums_in_place(model: Any) -> list[Patch]:
    def forward(self: Any, hidden_states: torch.Tensor, **options: Any) -> torch.Tensor:
        states, _ = self.self_attn(self.input_layernorm(hidden_states), **options)
        states.add_(hidden_states)
        return self.mlp(self.post_attention_layernorm(states)).add_(states)

    return [(llama.LlamaDecoderLayer, "forward", forward)]


def sorted_sequences(model: Any) -> list[Patch]:
    """Equal sequences of a pass become neighbours, so that one call serves their attention."""
    run = engine.hidden_states

    def hidden_states(model: Any, packed: Packed, rows: Rows, fill: int | None = None) -> torch.Tensor:
        order = sorted(range(len(packed.lengths)), key=lambda place: (packed.lengths[place], rows.counts[place]))
        places, read = (_moved(sizes, order, rows.places.device) for sizes in (packed.lengths, rows.counts))
        lengths, counts = (tuple(sizes[place] for place in order) for sizes in (packed.lengths, rows.counts))
        moved = Packed(packed.input_ids[:, places], packed.position_ids[:, places], lengths)
        states = run(model, moved, Rows(places.argsort()[rows.places[read]], counts), fill)
        return torch.empty_like(states).index_copy_(0, read, states)

    return [(engine, "hidden_states", hidden_states)]


def _moved(sizes: Sequence[int], order: Sequence[int], device: torch.device) -> torch.Tensor:
    """The places of the rows, sequences of so many rows each, when these come in another order."""
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return torch.from_numpy(np.concatenate([parts[place] for place in order])).to(device)


def together(model: Any) -> list[Patch]:
    forms = (one_norm, swiglu_in_place, rotary_by_halves, sums_in_place)
    return [patch for form in forms for patch in form(model)]


def one_function(model: Any) -> list[Patch]:
    """As :func:`together` and with one product for Q, K and V, and no modules called inside a layer."""

    def forward(
        self: Any, hidden_states: torch.Tensor, *, position_embeddings: Any, segments: Any, **_: Any
    ) -> torch.Tensor:
        own, mlp, before, behind = self.self_attn, self.mlp, self.input_layernorm, self.post_attention_layernorm
        heads = [layer.out_features // own.head_dim for layer in (own.q_proj, own.k_proj, own.v_proj)]
        states = rms_norm(hidden_states, before.weight.shape, before.weight, before.variance_epsilon)
        whole = linear(states, _merged(own.q_proj, own.k_proj, own.v_proj))
        whole = whole.unflatten(-1, (-1, own.head_dim)).transpose(1, 2)
        both, value = whole.split([sum(heads[:2]), heads[2]], 1)
        query, key = _rotated(both, *(angles.unsqueeze(1) for angles in position_embeddings)).split(heads[:2], 1)
        attend = ALL_ATTENTION_FUNCTIONS[BIDIRECTIONAL]
        attended, _ = attend(own, query, key, value, None, scaling=own.scaling, segments=segments)
        total = linear(attended.flatten(2), own.o_proj.weight).add_(hidden_states)
        states = rms_norm(total, behind.weight.shape, behind.weight, behind.variance_epsilon)
        gate = silu(linear(states, mlp.gate_proj.weight), inplace=True)
        return linear(gate.mul_(linear(states, mlp.up_proj.weight)), mlp.down_proj.weight).add_(total)

    return [(llama.LlamaDecoderLayer, "forward", forward)]


FORMS: dict[str, Callable[[Any], list[Patch]]] = {
    "now": lambda model: [],
    "torch's rms_norm": one_norm,
    "SwiGLU in place": swiglu_in_place,
    "gate and up as one product": gate_with_up,
    "rotary by halves, no cat": rotary_by_halves,
    "Q, K and V as one product": qkv_as_one,
    "residual sums in place": sums_in_place,
    "sequences of a pass sorted by length": sorted_sequences,
    "norm, SwiGLU, rotary and sums together": together,
    "these and Q, K, V, one function a layer": one_function,
}
