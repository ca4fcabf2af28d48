"""Functions that a GPU runs as one compiled kernel; as they are on a CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from entropy_valley.errors import InputError

# The sums of a row must not depend on how many rows there are. ``batch_invariant`` alone does not see to that in torch
# 2.13: where the first call has fewer rows than twice the GPU's multiprocessors (256 < 2 · 132 on an H100), sums are
# split by that number; so nothing is split. The first call still chooses the size of blocks, and padded passes always
# have HEAD_ROWS rows: the kernel is theirs.
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
            "Install a C compiler (gcc) and Python's headers (Python.h), or load their module; Triton comes with torch.",
        ) from error
