from __future__ import annotations

import pytest
import tiny_checkpoints
import torch
from tiny_checkpoints import SOURCES

from entropy_valley import files
from entropy_valley.backbone.families import FAMILIES
from entropy_valley.backbone.loading import load_backbone
from entropy_valley.engine.job import Job


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Bit-equality in any company is promised for one thread."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """A tiny random checkpoint folder of each family."""
    root = tmp_path_factory.mktemp("checkpoints")
    for name, family in FAMILIES.items():
        tiny_checkpoints.write(root / name, name, eos=3 if family.causal else 4)
    return root


@pytest.fixture(scope="session", params=sorted(name for name, family in FAMILIES.items() if not family.causal))
def backbone(checkpoints, request):
    return load_backbone(checkpoints / request.param, request.param)


@pytest.fixture(scope="session")
def llada(checkpoints):
    return load_backbone(checkpoints / "llada", "llada")


@pytest.fixture(scope="session")
def llama3(checkpoints):
    return load_backbone(checkpoints / "llama3", "llama3")


@pytest.fixture
def testset(tmp_path):
    """Twelve pairs of different lengths."""
    path = tmp_path / "test.jsonl"
    pairs = zip(SOURCES[::5] + SOURCES[1::5], SOURCES[::-1], strict=False)
    files.write_jsonl(
        path, [{"id": f"s{n}", "source": source, "target": target} for n, (source, target) in enumerate(pairs)]
    )
    return path


@pytest.fixture
def no_model(monkeypatch):
    """From here on a job that loads the model fails."""

    def refuse():
        monkeypatch.setattr(Job, "backbone", property(lambda job: pytest.fail("the model was loaded")))

    return refuse
