from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import fake_results


@pytest.fixture
def params(tmp_path):
    """The params of two backbones' results, one with a single seed, in a tree of its own."""
    return fake_results.write(tmp_path, backbones={"llada-tiny": (1, 2, 3), "dream-tiny": (1,)})


@pytest.fixture
def matched(tmp_path):
    """The params of a backbone with three seeds beside an autoregressive one that has two of them."""
    return fake_results.write(tmp_path, autoregressive={"llama3-tiny": (1, 2)})
