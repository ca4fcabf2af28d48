"""What a GPU needs so that results stay the same: compiled kernels, and sums that do not depend on the company.

On a GPU the shape of a product decides which kernel computes it, and so the order of its sums. Passes are padded to a
fixed number of tokens by dummy sequences, the last layer runs on all rows, the LM head on chunks of a fixed number of
rows, and no product splits its sums. On a CPU with one thread results are independent without all this.

Compiled are the reduction of the logits and, if the config says so, each decoder layer.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from entropy_valley.errors import InputError
from entropy_valley.model.attention import Segments, attending

HEAD_ROWS = {"cpu": 64, "cuda": 256}  # rows of the LM head's products in a padded pass
# The sums of a row must not depend on how many rows there are. ``batch_invariant`` alone does not see to that in torch
# 2.13: where the first call has fewer rows than twice the GPU's multiprocessors (256 < 2 · 132 on an H100), sums are
# split by that number; so nothing is split. The first call still chooses the size of blocks: in padded passes it has
# HEAD_ROWS rows, as all calls there. Other passes have a kernel of their own, for torch guards what whole_sums sets.
STABLE = {"deterministic": True, "batch_invariant": True, "split_reductions": False}


@functools.cache
def compiled(function: Callable[..., Any], device: str) -> Callable[..., Any]:
    """``function``, on a GPU compiled into one graph for all numbers of rows.

    Raises InputError as :func:`require_compiler` does.
    """
    if device == "cpu":
        return function
    require_compiler(device)
    return torch.compile(function, dynamic=True, options=STABLE)


@functools.cache
def require_compiler(device: str) -> None:
    """Raise InputError where ``torch.compile`` does not work on the device, as a tiny function shows.

    What is not compiled has other last bits, under the same name in the store.
    """
    try:
        torch.compile(lambda value: value + 1)(torch.ones(2, device=device))
    except Exception as error:  # what is missing decides who raises: torch, Triton, the compiler or the linker
        reason = (str(error).strip().splitlines() or [""])[0]
        raise InputError(
            "torch.compile",
            f"it does not work on this machine ({type(error).__name__}: {reason})",
            "Install a C compiler (gcc) and Python's headers (Python.h), or load their module.",
        ) from error


@contextlib.contextmanager
def compiled_layers(model: Any) -> Iterator[None]:
    """While this runs, each layer of a stock ``…ForCausalLM`` runs as one compiled graph.

    All layers share the graph, whose norms, rotations and SwiGLU are fused; attention is one call in it. For passes of
    one shape that run all layers on all rows. Raises InputError as :func:`require_compiler` does.
    """
    require_compiler(model.device.type)
    layers = model.model.layers
    stock, last = type(layers[0]), type(layers[-1])
    layers[-1].__class__ = stock  # it would skip rows, of which there are none here, and have a graph of its own
    for layer in layers:
        layer.forward = functools.partial(_forward, layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward
        layers[-1].__class__ = last


def _forward(
    layer: Any,
    states: torch.Tensor,
    *,
    segments: Segments,
    position_embeddings: tuple[torch.Tensor, torch.Tensor],
    **_: Any,
) -> torch.Tensor:
    """A layer's output; what else transformers gives it has no part in attention inside packed sequences."""
    with attending(layer.self_attn, segments):
        return _graph()(layer, states, position_embeddings)


@functools.cache
def _graph() -> Callable[..., torch.Tensor]:
    return torch.compile(_layer, fullgraph=True, dynamic=False, options=STABLE)


def _layer(layer: Any, states: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return type(layer).forward(layer, states, attention_mask=None, position_embeddings=angles)


@contextlib.contextmanager
def whole_sums(wanted: bool = True) -> Iterator[None]:
    """No product of bfloat16 splits its sums over several blocks of a GPU while this runs, if that is ``wanted``.

    cuBLAS, torch's default, cannot be told so: torch 2.13 then ends each product with a RuntimeError that asks for
    cuBLASLt, so that is preferred meanwhile. One shape alone would not do: the blocks of a split may add their parts
    in the order in which they end.
    """
    if not wanted:
        yield
        return
    import torch

    cuda, name = torch.backends.cuda, "allow_bf16_reduced_precision_reduction"
    before = getattr(cuda.matmul, name), getattr(cuda.matmul, f"{name}_split_k")
    library = cuda.preferred_blas_library() if torch.version.cuda else None  # a build for CPUs has neither
    try:
        if library is not None:
            cuda.preferred_blas_library("cublaslt")
        setattr(cuda.matmul, name, (False, False))  # reduced precision, split-K
        yield
    finally:
        setattr(cuda.matmul, name, before)
        if library is not None:
            cuda.preferred_blas_library(library)
