"""What keeps the result of a canvas independent of its company on a GPU: every pass and every product has one shape.

On a GPU the shape of a product decides which kernel computes it, and so the order of its sums. Passes are padded to a
fixed number of tokens by dummy sequences, the last layer runs on all rows, the LM head on chunks of a fixed number of
rows, and no product splits its sums. On a CPU with one thread results are independent without all this.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

# Tokens of a padded pass, unless a job says otherwise: enough to keep a GPU busy, and few in the nearly empty passes at
# the end of a stream.
TOKENS = {"cpu": 1024, "cuda": 4096}
HEAD_ROWS = {"cpu": 64, "cuda": 256}  # rows of the LM head's products in such a pass


def is_wanted(said: bool | str, device: str) -> bool:
    """What ``decoding.batch_invariant`` means on a device; ``auto``: on GPUs."""
    return device.startswith("cuda") if said == "auto" else bool(said)


def padded_tokens(spec: dict[str, Any], device: str, budget: int | None) -> int | None:
    """Tokens of each pass of a job that pads them; None: it pads none. ``budget`` is what its command line says."""
    if not is_wanted(spec.get("batch_invariant", "auto"), device):
        return None
    return budget or TOKENS[device.partition(":")[0]]


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
