"""The decoder of every family: RMS norms, rotary embeddings, grouped-query attention and SwiGLU on packed sequences.

It computes what the stock classes of transformers do, whose module names it has; they are the oracle in tests. What
they cannot do is here: attention inside packed sequences, a last layer on the rows that are read, rotation in float32
whatever the weights are, and layers that are compiled but for their attention.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, silu
from torch.utils.checkpoint import checkpoint

from entropy_valley.model.attention import Packed, Rows, Segments, attend, filled, segments_of
from entropy_valley.model.families import Config

Halves = tuple[Callable[..., Any], Callable[..., Any]]  # of a layer, before and after its attention
Rotation = tuple[Tensor, Tensor]  # cos and sin
FULL_KERNEL = 4  # rows: with fewer, a CPU's BLAS takes another path, which rounds differently


class Decoder(nn.Module):
    """A language model; :meth:`hidden_states` runs it, and ``lm_head`` makes logits of what that gives.

    In training, with ``recompute``, only the inputs of the layers are kept, and the backward pass computes each again;
    with ``compiles``, the layers are compiled, for passes of any size.
    """

    recompute = compiles = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config, self.angles = config, Angles(config)
        self.model = _Body(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        _draw(self.lm_head)
        self.tie()

    def tie(self) -> None:
        """Give the LM head the weights of the embeddings, where the config says so."""
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def untie(self) -> None:
        """Give the LM head weights of its own: those of the embeddings, where it shared them."""
        if self.lm_head.weight is self.model.embed_tokens.weight:
            self.lm_head.weight = nn.Parameter(self.lm_head.weight.detach().clone(), requires_grad=False)
            self.config = self.config.model_copy(update={"tie_word_embeddings": False})

    @property
    def device(self) -> torch.device:
        return self.model.embed_tokens.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.embed_tokens.weight.dtype

    def hidden_states(
        self, packed: Packed, rows: Rows | None = None, fill: int | None = None, compiled: bool = False
    ) -> Tensor:
        """Last hidden states after the final norm, (rows, width).

        With ``rows``, only theirs: for the other rows the last layer computes only keys and values, unless the family
        is causal. Where ``rows`` have counts, those of a prefix are not read. With ``fill``, the pass has at least that
        many tokens, some of dummy sequences, all layers run on all of them, and no sequence's states depend on the
        others, on a GPU too; ``compiled``: its layers are compiled, but for their attention.
        """
        count, apart = packed.input_ids.shape[1], fill is not None
        packed = packed if fill is None else filled(packed, fill)
        segments, given = segments_of(packed, apart), (packed.input_ids[0], packed.position_ids[0])
        if rows is None or apart or self.config.causal:
            states = self(*given, segments, compiled=compiled and apart)
            return states[:count] if rows is None else states[rows.places]
        reading = None if rows.counts is None else segments_of(packed, apart, rows.counts)
        return self(*given, segments, rows.places, reading)

    def forward(
        self,
        ids: Tensor,
        positions: Tensor,
        segments: Segments,
        rows: Tensor | None = None,
        reading: Segments | None = None,
        compiled: bool = False,
    ) -> Tensor:
        """Last states after the final norm, (rows, width), of tokens and their positions, both (rows,).

        With ``rows``, the last layer gives only theirs. With ``reading`` also only their queries attend there; without
        it all do, and the layer then continues with ``rows``.
        """
        run = functools.partial(checkpoint, use_reentrant=False) if self.recompute and self.training else Layer.__call__
        states, angles = self.model.embed_tokens(ids), self.angles.at(positions, self.device, self.dtype)
        halves = Layer.before, Layer.after
        if compiled or self.compiles:
            halves = _compiled_halves(dynamic=not compiled)
        *layers, last = self.model.layers
        for layer in layers:
            states = run(layer, states, angles, segments, halves)
        return self.model.norm(run(last, states, angles, segments, halves, rows, reading))


class _Body(nn.Module):
    """All but the LM head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embed_tokens = _Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, number) for number in range(config.num_hidden_layers))
        self.norm = Norm(config.hidden_size, config.rms_norm_eps)
        _draw(self)


class _Embedding(nn.Embedding):
    """Draws nothing on ``meta``: a normal distribution there makes torch import its whole compiler."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


def _draw(module: nn.Module) -> None:
    """Random weights, in the order in which the stock classes draw theirs; none on ``meta``."""
    for part in module.modules():
        if getattr(getattr(part, "weight", None), "is_meta", False):
            continue
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, 0.0, 0.02)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)


class Layer(nn.Module):
    """A decoder layer, in two halves around its attention."""

    def __init__(self, config: Config, number: int) -> None:
        super().__init__()
        self.number, self.head_dim, self.causal = number, config.head_width, config.causal
        self.self_attn, self.mlp = _Attention(config), _SwiGLU(config)
        width, eps = config.hidden_size, config.rms_norm_eps
        self.input_layernorm, self.post_attention_layernorm = Norm(width, eps), Norm(width, eps)

    def forward(
        self,
        states: Tensor,
        angles: Rotation,
        segments: Segments,
        halves: Halves,
        rows: Tensor | None = None,
        reading: Segments | None = None,
    ) -> Tensor:
        """The layer's states, (rows, width); ``rows`` and ``reading`` are those of :class:`Decoder`."""
        if rows is None:
            return halves[1](self, states, self._attended(states, angles, segments, halves[0]))
        count = len(rows)
        rows = torch.cat([rows, rows[-1:].expand(max(0, FULL_KERNEL - count))])
        if reading is None:
            # All queries as a slice: it is a node of its own, where their gradients are added first.
            attended = self._attended(states, angles, segments, halves[0], slice(None))[rows]
        else:
            attended = self._attended(states, angles, reading, halves[0], rows)
            attended = pad(attended, (0, 0, 0, len(rows) - count))
        return halves[1](self, states[rows], attended)[:count]

    def _attended(
        self,
        states: Tensor,
        angles: Rotation,
        segments: Segments,
        before: Callable[..., tuple[Tensor, Tensor, Tensor]],
        rows: Tensor | slice | None = None,
    ) -> Tensor:
        """What the rows attend to, (rows, width); queries, keys and values are given back before the second half."""
        query, key, value = before(self, states, angles, rows)
        if (count := sum(segments.queries)) < len(query):  # behind them, rows fill a kernel up
            query = query[:count]
        return attend(segments, self.number, query, key, value, self.causal).flatten(1)

    def before(
        self, states: Tensor, angles: Rotation, rows: Tensor | slice | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (rows, heads, head width); with ``rows``, only their queries."""
        attention, normed, (cos, sin) = self.self_attn, self.input_layernorm(states), angles
        own, cos_of_own, sin_of_own = (normed, cos, sin) if rows is None else (normed[rows], cos[rows], sin[rows])
        query, key, value = (
            projection(inputs).unflatten(-1, (-1, self.head_dim))
            for projection, inputs in ((attention.q_proj, own), (attention.k_proj, normed), (attention.v_proj, normed))
        )
        if attention.q_norm is not None and attention.k_norm is not None:
            query, key = attention.q_norm(query), attention.k_norm(key)
        # In float32 where the angles are: as in LLaDA, whose queries and keys are then rounded.
        query, key = _rotated(query, cos_of_own, sin_of_own), _rotated(key, cos, sin)
        return query.to(value.dtype), key.to(value.dtype), value

    def after(self, states: Tensor, attended: Tensor) -> Tensor:
        """The layer's states, from those before it and what its rows attended to, both (rows, width)."""
        states = states + self.self_attn.o_proj(attended)
        return states + self.mlp(self.post_attention_layernorm(states))


def _rotated(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = heads.chunk(2, -1)
    return heads * cos[:, None] + torch.cat([-second, first], -1) * sin[:, None]


@functools.cache
def _compiled_halves(dynamic: bool) -> Halves:
    """Both halves of a layer, each one graph that all layers share: norms, rotations and SwiGLU are fused.

    Deterministic: no kernel is chosen by its time, which could choose another one in the next process.
    """

    def compiled(half: Callable[..., Any]) -> Callable[..., Any]:
        return torch.compile(half, dynamic=dynamic, fullgraph=True, options={"deterministic": True})

    return compiled(Layer.before), compiled(Layer.after)


class _Attention(nn.Module):
    """The four projections, and the norms of the heads of q and k where the family has them."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, head = config.hidden_size, config.head_width
        queries, keys = config.num_attention_heads * head, config.key_heads * head
        self.q_proj = nn.Linear(width, queries, bias=config.qkv_bias)
        self.k_proj = nn.Linear(width, keys, bias=config.qkv_bias)
        self.v_proj = nn.Linear(width, keys, bias=config.qkv_bias)
        self.o_proj = nn.Linear(queries, width, bias=False)
        self.q_norm = Norm(head, config.rms_norm_eps) if config.qk_norm else None
        self.k_norm = Norm(head, config.rms_norm_eps) if config.qk_norm else None


class _SwiGLU(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        return self.down_proj(silu(self.gate_proj(states)) * self.up_proj(states))


class Norm(nn.RMSNorm):
    """In float32, rounded to the states' dtype before the weight; torch's own rounds once, behind it."""

    eps: float

    def forward(self, states: Tensor) -> Tensor:
        wide = states.to(torch.float32)
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * normed.to(states.dtype)


class Angles:
    """cos and sin of all positions of the context, in tables: computed once, on the host, in float32.

    The stock classes compute angles by a matrix product in every pass. In training this would run in TF32 on a GPU,
    where inverse frequencies keep ten bits: errors up to 0.16 rad at position 1,000, and other angles than in decoding.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._tables: dict[tuple[torch.device, torch.dtype], Rotation] = {}

    def at(self, positions: Tensor, device: torch.device, dtype: torch.dtype) -> Rotation:
        """cos and sin, (rows, head width), of ``positions`` (rows,): in ``dtype``, or float32 where the family rotates
        in it."""
        kind, rows = (device, torch.float32 if self._config.float32_rotary else dtype), len(positions)
        # A sequence too long for the context is not refused here; its positions are below the number of rows.
        if kind not in self._tables or len(self._tables[kind][0]) < rows:
            count = max(self._config.max_position_embeddings, 1 << (rows - 1).bit_length())
            width = self._config.head_width
            exponents = torch.arange(0, width, 2, dtype=torch.float32) / width
            angles = torch.arange(count, dtype=torch.float32)[:, None] * (1.0 / self._config.rope_theta**exponents)
            angles = torch.cat((angles, angles), dim=-1)
            self._tables[kind] = angles.cos().to(*kind), angles.sin().to(*kind)
        cos, sin = self._tables[kind]
        return cos[positions], sin[positions]
