"""Functions that a GPU runs as one compiled kernel; as they are on a CPU, and where nothing can be compiled."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

# A kernel that is neither chosen by its speed on this machine nor by the number of rows that come first.
_STABLE = {"deterministic": True, "batch_invariant": True}


@functools.cache
def compiled(function: Callable[..., Any], device: str) -> Callable[..., Any]:
    """``function``, on a GPU compiled into one graph for all numbers of rows."""
    if device == "cpu" or not can_compile(device):
        return function
    return torch.compile(function, dynamic=True, options=_STABLE)


@functools.cache
def can_compile(device: str) -> bool:
    """Whether ``torch.compile`` works on the device, as a tiny function shows; if not, a warning on stderr says so."""
    try:
        torch.compile(lambda value: value + 1)(torch.ones(2, device=device))
    except Exception as error:  # what is missing decides who raises: torch, Triton, the compiler or the linker
        reason = (str(error).strip().splitlines() or [""])[0]
        print(
            f"warning: torch.compile does not work here ({type(error).__name__}: {reason}). Results are the same up to "
            "rounding, but slower. It needs Triton, a C compiler (gcc) and Python's headers (Python.h).",
            file=sys.stderr,
            flush=True,
        )
        return False
    return True
