"""A SLURM of one node of its own, with pretended GPUs: how tests start it, ask it and disturb it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock
from workspace import Retraining

MINISLURM = Path(__file__).parents[1] / "slurm" / "minislurm.sh"
NEEDS_SLURM = pytest.mark.skipif(not shutil.which("sbatch"), reason="needs slurm-wlm and munge")
OFTEN = ["--slurm-init-seconds-before-status-checks", "1"]  # Snakemake looks after its jobs; later less often
PROFILE = ["--profile", "slurm"]
QUICK = [*PROFILE, "--set-threads", "train=1", *OFTEN]
FIELDS = ("JobID", "Comment", "Partition", "tres-per-job", "State", "RestartCnt")


@dataclass(frozen=True)
class Job:
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


class OnCluster:
    """A retraining as a job of a cluster."""

    def __init__(self, cluster, workspace):
        self.cluster, self.workspace = cluster, workspace
        self.retraining = Retraining(workspace.folder)
        self._before = {job.id for job in cluster.jobs()}

    def start(self, *options):
        return self._call(self.workspace.start, *QUICK, self.retraining.target, *options)

    def run(self, *options, fails=False):
        return self._call(self.workspace.run, *QUICK, self.retraining.target, *options, fails=fails)

    def submit_head(self):
        """Snakemake as a job; its number."""
        folder, configs = self.workspace.folder, self.workspace.config_files(self.retraining.over)
        command = [f"{folder}/profiles/slurm/head.sh", *QUICK[2:], self.retraining.target, "--configfile", *configs]
        self.cluster.run("sbatch", "--partition=cpu", f"--chdir={folder}", *command)
        return self.jobs()[0].id

    def unlock(self):
        self._call(self.workspace.run, "--unlock", *PROFILE)

    def _call(self, call, *arguments, **options):
        return call(*arguments, over=self.retraining.over, environment=self.cluster.environment, **options)

    def begun(self, *options):
        """Snakemake, once the job has a checkpoint."""
        process = self.start(*options)
        self.retraining.begun(process)
        return process

    def jobs(self):
        """Its jobs of the cluster, the first one first."""
        return sorted((job for job in self.cluster.jobs() if job.id not in self._before), key=lambda job: int(job.id))

    def own(self):
        """Those of the training, in the same order; others may preempt them."""
        return [job for job in self.jobs() if job.rule == "train"]

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


def ended(process):
    """What Snakemake said."""
    said, _ = process.communicate()
    assert process.returncode == 0, said
    return said


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
