from __future__ import annotations

import pytest
from filelock import FileLock
from slurm_cluster import OnCluster, started
from workspace import MIXED, Retraining, Workspace

RELEASED = {
    "check": False,  # it is run where there is no GPU
    "adapters": "released",
    "matrix": {"backbones": ["llada-8b"], "directions": ["en-zh"], "seeds": [1]},
    "instruct": {"backbones": []},
    "tables": {"studies": []},
    "released": {name: {"en-zh": {1: {"folder": "given"}}} for name in ("llada-8b", "llama3-8b")},
}


@pytest.fixture
def paper(tmp_path):
    """The paper's matrix, nothing done yet."""
    return Workspace(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A small matrix with every job done, for dry runs only."""
    workspace = Workspace(tmp_path_factory.mktemp("finished"), "config.yaml", "config/demo.yaml", MIXED)
    workspace.finish()
    return workspace


@pytest.fixture(scope="session")
def adopted(tmp_path_factory):
    """Every job done from given adapters."""
    folder = tmp_path_factory.mktemp("adopted")
    (folder / "given").mkdir()
    (folder / "given/adapter_config.json").touch()
    workspace = Workspace(folder, "config.yaml", RELEASED)
    workspace.finish()
    return workspace


@pytest.fixture(scope="session")
def cluster():
    """A SLURM of one node, without a database; a worker's own, so that no test disturbs another."""
    with started() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def trained(tmp_path_factory, worker_id):
    """The smallest demo up to its adapter, made by one worker for all."""
    workspace = Workspace(tmp_path_factory.mktemp("trained"), "config/demo.yaml", "config/smallest.yaml", real=True)
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "shared"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            workspace.run("--cores", "2", Retraining.target)
            workspace.folder.rename(shared)
    workspace.folder = shared
    return workspace


@pytest.fixture
def training(cluster, trained, tmp_path):
    """A training over that adapter, in a copy of its folder, and the job of the cluster that it will be."""
    return OnCluster(cluster, trained.copied(tmp_path / "copy"))
