import re

import pytest
from filelock import FileLock
from slurm_cluster import QUICK, OnCluster, started
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
def once(tmp_path_factory, worker_id):
    """Let one worker make a workspace for all."""
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent

    def made(name, make, *configs, **how):
        workspace, shared = Workspace(tmp_path_factory.mktemp(name), *configs, **how), base / f"shared-{name}"
        with FileLock(f"{shared}.lock"):
            if not shared.exists():
                make(workspace)
                workspace.folder.rename(shared)
        workspace.folder = shared
        return workspace

    return made


@pytest.fixture(scope="session")
def finished(once, tmp_path_factory):
    """A small matrix with every job done, for dry runs only; a worker's own copy, as Snakemake locks its folder."""
    workspace = once("finished", Workspace.finish, "config.yaml", "config/demo.yaml", MIXED)
    return workspace.copied(tmp_path_factory.mktemp("copy") / "finished")


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
def trained(once, cluster):
    """The smallest demo up to its adapter, by jobs of the cluster; only to be copied."""

    def train(workspace):
        before = cluster.jobs()
        said = workspace.run(*QUICK, Retraining.target, environment=cluster.environment)
        assert re.search(r"Job \d+ has been submitted .*/rule_train/en-zh_llada-tiny_1/", said), said
        jobs = [job for job in cluster.jobs() if job not in before]
        assert sorted(job.rule for job in jobs) == ["pretrain", "train"]
        assert {(job.partition, job.asked) for job in jobs} == {("cpu", "N/A")}

    return once("trained", train, "config/demo.yaml", "config/smallest.yaml", real=True)


@pytest.fixture
def training(cluster, trained, tmp_path):
    """A training over that adapter, in a copy of its folder, and the job of the cluster that it will be."""
    return OnCluster(cluster, trained.copied(tmp_path / "copy"))
