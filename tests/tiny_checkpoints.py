"""Tiny random checkpoint folders for tests, and for the comparison in exactness.py, with their fixtures."""

from __future__ import annotations

import pytest
import torch

from entropy_valley.checking.computations import SOURCES
from entropy_valley.checking.computations import write_tiny as write
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone

__all__ = ["SOURCES", "write"]


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Bit-equality in any company is promised for one thread."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """A tiny random checkpoint folder of each family."""
    root = tmp_path_factory.mktemp("checkpoints")
    for name, family in FAMILIES.items():
        write(root / name, name, eos=3 if family.causal else 4)
    return root


@pytest.fixture(scope="session", params=sorted(name for name, family in FAMILIES.items() if not family.causal))
def diffusion(checkpoints, request):
    """A backbone of each masked diffusion family."""
    return load_backbone(checkpoints / request.param, request.param)


@pytest.fixture(scope="session", params=["diffullama", "dream", "llada"])
def backbone(checkpoints, request):
    """A backbone of each architecture and shift: chats make no difference to how a canvas is filled."""
    return load_backbone(checkpoints / request.param, request.param)


@pytest.fixture(scope="session")
def llada(checkpoints):
    return load_backbone(checkpoints / "llada", "llada")


@pytest.fixture(scope="session")
def llama3(checkpoints):
    return load_backbone(checkpoints / "llama3", "llama3")
