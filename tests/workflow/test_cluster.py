"""What may happen to a job on a cluster, and to Snakemake meanwhile, on a real SLURM: `make test-cluster`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock
from workspace import Workspace

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("sbatch"), reason="needs slurm-wlm and munge"),
]
MINISLURM = Path(__file__).parents[1] / "slurm" / "minislurm.sh"
OFTEN = ["--slurm-init-seconds-before-status-checks", "1"]  # Snakemake looks after its jobs; later less often
PROFILE = ["--profile", "slurm"]
QUICK = [*PROFILE, "--set-threads", "train=1", *OFTEN]
FIELDS = ("JobID", "Comment", "Partition", "tres-per-job", "State", "RestartCnt")
RETRAINED = {"training": {"max_steps": 80, "checkpoint_every": 4}}  # long enough to be killed on its way
ADAPTER = "results/smallest/en-zh/llada-tiny/seed1/adapter/adapter.json"


class Job(NamedTuple):
    """A job that was submitted: of which rule, to which partition, with which GPUs (``N/A``: none), in which state."""

    id: str
    comment: str
    partition: str
    asked: str
    state: str
    restarts: int

    @property
    def rule(self) -> str:
        """``rule_train_wildcards_…`` is how the plugin comments its jobs."""
        return self.comment.removeprefix("rule_").split("_wildcards")[0]


class Cluster:
    """``environment`` is what its commands need."""

    def __init__(self, folder: Path) -> None:
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}

    def run(self, *command: str) -> str:
        """What a command of SLURM says."""
        variables = {**os.environ, **self.environment}
        return subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE, text=True).stdout

    def jobs(self) -> list[Job]:
        """All jobs since it started."""
        columns = ",".join(f"{name}:120|" for name in FIELDS)
        said = self.run("squeue", "--noheader", "--states=all", f"--Format={columns}")
        rows = [[field.strip() for field in line.split("|")] for line in said.splitlines()]
        return [Job(*row, int(restarts)) for *row, restarts, _ in rows]  # a separator ends each line

    def kill(self, id: str) -> None:
        """End all processes of a job as a lost node does."""
        lines = self.run("scontrol", "listpids", id).splitlines()[1:]
        for line in lines:
            os.kill(int(line.split()[0]), signal.SIGKILL)

    def until(self, condition: Callable[[], object], seconds: float = 240) -> None:
        """Wait for something that SLURM does."""
        last = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < last, self.jobs()
            time.sleep(0.1)


class Training:
    """A training of the smallest demo's first run over its finished adapter, as a job of a cluster."""

    def __init__(self, cluster, workspace):
        self.cluster, self.workspace, self.over = cluster, workspace, RETRAINED
        results = workspace.folder / "results/smallest"
        self._adapter, self._log = workspace.folder / ADAPTER, results / "logs/train/en-zh.llada-tiny.seed1.log"
        self._last = results / "work/train/en-zh.llada-tiny.seed1/last.json"
        self._before = {job.id for job in cluster.jobs()}

    def start(self, *options):
        return self._call(self.workspace.start, *QUICK, ADAPTER, *options)

    def run(self, *options, fails=False):
        return self._call(self.workspace.run, *QUICK, ADAPTER, *options, fails=fails)

    def submit_head(self):
        """Snakemake as a job; its number."""
        folder, configs = self.workspace.folder, self.workspace.config_files(self.over)
        command = [f"{folder}/profiles/slurm/head.sh", *QUICK[2:], ADAPTER, "--configfile", *configs]
        self.cluster.run("sbatch", "--partition=cpu", f"--chdir={folder}", *command)
        return self.jobs()[0].id

    def unlock(self):
        self._call(self.workspace.run, "--unlock", *PROFILE)

    def _call(self, call, *arguments, **options):
        return call(*arguments, over=self.over, environment=self.cluster.environment, **options)

    def begun(self):
        """Snakemake, once the job has a checkpoint."""
        process = self.start()
        while not self._last.exists():
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.05)
        return process

    def is_unfinished(self):
        """A checkpoint of the new adapter is there, and it is not."""
        return self._last.exists() and not self._is_finished()

    def went_on(self):
        """The new adapter is there, and its last job did not start from nothing."""
        return self._is_finished() and "continuing after step " in self._log.read_text()

    def _is_finished(self):
        return self._adapter.is_file() and json.loads(self._adapter.read_text())["steps"] == 80

    def jobs(self):
        """Its jobs of the cluster, the first one first."""
        return sorted((job for job in self.cluster.jobs() if job.id not in self._before), key=lambda job: int(job.id))

    def states(self):
        return [job.state for job in self.jobs()]

    def processes(self):
        """The processes of its script, and those that it has started, on any node."""
        return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and self._is_training(path)]

    def freeze(self):
        """Keep the training from ending before SLURM ends it; whether it had processes."""
        processes = self.processes()
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        return bool(processes)

    def _is_training(self, process):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            ours = any(word.endswith(b"train.py") or b"entropy_valley.training" in word for word in command)
            return ours and (process / "cwd").readlink() == self.workspace.folder
        except OSError:  # it has ended
            return False


@contextmanager
def started() -> Iterator[Cluster]:
    """A SLURM, until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))  # a short path, open to munge
    one_at_a_time = FileLock(Path(tempfile.gettempdir(), "minislurm.lock"))  # two at once would take the same ports
    try:
        with one_at_a_time:
            variables = {**os.environ, "MINISLURM_PORT": str(free_port())}
            subprocess.run([MINISLURM, "start", folder], env=variables, check=True)
        yield Cluster(folder)
    finally:
        subprocess.run([MINISLURM, "stop", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """The first of two free neighbours."""
    for port in range(16817, 60000, 2):
        with socket.socket() as one, socket.socket() as other:
            try:
                for number, each in enumerate((one, other)):
                    each.bind(("127.0.0.1", port + number))
            except OSError:
                continue
            return port
    raise RuntimeError("no free ports")


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
        said = workspace.run(*QUICK, ADAPTER, environment=cluster.environment)
        assert "done: train/en-zh_llada-tiny_1 (" in said, said
        jobs = [job for job in cluster.jobs() if job not in before]
        assert sorted(job.rule for job in jobs) == ["pretrain", "train"]
        assert {(job.partition, job.asked) for job in jobs} == {("cpu", "N/A")}

    return once("trained", train, "config/demo.yaml", "config/smallest.yaml", real=True)


@pytest.fixture
def training(cluster, trained, tmp_path):
    """A training over that adapter, in a copy of its folder."""
    return Training(cluster, trained.copied(tmp_path / "copy"))


def test_a_job_that_nears_its_time_limit_saves_and_requeues_itself(training):
    """All its processes save after the same step: the first, because the job may run for a second only."""
    training.over = {"training": RETRAINED["training"] | {"processes": 2}}
    process = training.start("--set-resources", "train:runtime=10", "train:requeue_before=599")
    training.cluster.until(lambda: [job.restarts for job in training.jobs()] == [1], 300)
    (job,) = training.jobs()
    training.cluster.run("scontrol", "update", f"JobId={job.id}", "TimeLimit=60")
    said, _ = process.communicate()
    assert process.returncode == 0 and "Trying to restart job" not in said, said
    (job,) = training.jobs()
    assert (job.state, job.restarts) == ("COMPLETED", 1)
    assert training.went_on()


def test_the_check_is_a_job_and_what_slurm_refuses_is_said(cluster, tmp_path):
    """All checks pass, with two processes; what the training says stands between the lines of the log."""
    two = {"training": {"processes": 2}}
    smallest = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", two, real=True)
    smallest.run(*QUICK, "--force", "check", environment=cluster.environment)
    results = tmp_path / "results/smallest"
    lines, log = (results / "check.txt").read_text().splitlines(), (results / "logs/check.log").read_text()
    assert all(line in log for line in lines)
    assert {line.split()[0] for line in lines} == {"ok", "skipped"}
    assert any("2 processes, float32, losses " in line for line in lines)
    partitions = tmp_path / "profiles/slurm/partitions.yaml"
    partitions.write_text(partitions.read_text().replace("  cpu:", "  elsewhere:"))
    said = smallest.run(*QUICK, "--force", "check", environment=cluster.environment, fails=True)
    assert "failed: check" in said and "invalid partition specified: elsewhere" in said, said


def test_after_snakemake_is_killed_its_jobs_run_on_and_the_documented_recovery_works(training):
    process = training.begun()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert training.states() == ["RUNNING"]
    training.freeze()
    training.unlock()
    said = training.run(fails=True)
    assert "error: SLURM: 1 jobs of an earlier run of this folder are in the queue" in said, said
    training.cluster.run(*re.search("scancel --name=[-0-9a-f]+", said)[0].split())
    training.cluster.until(lambda: training.states() == ["CANCELLED"] and not training.processes())
    assert training.is_unfinished()
    waits_for_its_jobs_after_sigterm(training)


def waits_for_its_jobs_after_sigterm(training):
    """And submits no more: another run of Snakemake finds nothing to do."""
    process = training.start()
    training.cluster.until(training.processes)
    os.kill(process.pid, signal.SIGTERM)
    said, _ = process.communicate()
    assert process.returncode != 0 and "Will exit after finishing currently running jobs" in said, said
    assert training.states() == ["CANCELLED", "COMPLETED"] and training.went_on()
    training.run()
    assert training.states() == ["CANCELLED", "COMPLETED"]


def test_a_head_in_a_job_goes_on_after_a_lost_node_and_near_its_time_limit(training):
    head = training.submit_head()
    training.cluster.until(training.is_unfinished)
    training.cluster.kill(head)
    training.cluster.until(lambda: training.states() == ["FAILED", "RUNNING"])
    training.freeze()
    training.cluster.run("scontrol", "requeue", head)
    training.cluster.until(lambda: training.states() == ["RUNNING", "CANCELLED", "RUNNING"] and training.freeze())
    training.cluster.run("scancel", "--batch", "--signal=USR1", head)  # as SLURM does before the limit
    training.cluster.until(lambda: training.states() == ["COMPLETED", "CANCELLED", "CANCELLED", "COMPLETED"])
    assert training.jobs()[0].restarts == 2
    assert training.went_on()


def test_jobs_on_gpus_go_to_their_partition(cluster, tmp_path):
    """The paper's settings but for a training's GPUs; the jobs only touch their outputs."""
    over = {"tables": {"studies": []}, "training": {"processes": 2}, "decoding": {"shards": 1}, "check": False}
    workspace = Workspace(tmp_path, "config.yaml", over)
    runs = [f"results/en-zh/llada-8b/seed{seed}" for seed in (1, 2)]
    targets = [f"{run}/adapter/adapter.json" for run in runs]
    targets += [f"{runs[0]}/{path}" for path in ("matrix/scores.jsonl", "latency/wmt22/ev/med-T32.json")]
    targets.append("results/corpus/en-zh/length_ratios.json")
    quick = ["--profile", "slurm", "--set-threads", "train=4", "latency=4", *OFTEN]  # the node has 16 cores
    before = {job.id for job in cluster.jobs()}
    workspace.run(*quick, *targets, environment=cluster.environment)
    assert all((tmp_path / target).is_file() for target in targets)
    new = [job for job in cluster.jobs() if job.id not in before]
    assert Counter((job.rule, job.partition, job.asked) for job in new) == {
        ("train", "gpu", "gres:gpu:2"): 2,
        **{(rule, "gpu", "gres:gpu:1"): 1 for rule in ("set_score_translate", "latency")},
        **{(rule, "cpu", "N/A"): 1 for rule in ("corpus", "length_ratios")},
    }
