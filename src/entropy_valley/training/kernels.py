"""Which of torch's kernels small float32 models run fastest on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


@contextlib.contextmanager
def fast_kernels(device: torch.device | str) -> Iterator[None]:
    """Let float32 matrix products take the fast road of the device while the block runs.

    On a CPU the "medium" precision means oneDNN instead of MKL: twice as fast on AVX-512 at the same accuracy (only
    a CPU with AMX multiplies in bfloat16, and sums in float32). Its products are slow inside the fused attention
    kernel, so attention is computed by plain ones. On a GPU "high" is TF32, which here serves the float32 adapters.
    """
    before = torch.get_float32_matmul_precision()
    on_cpu = torch.device(device).type == "cpu"
    torch.set_float32_matmul_precision("medium" if on_cpu else "high")
    try:
        with sdpa_kernel(SDPBackend.MATH) if on_cpu else contextlib.nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(before)
