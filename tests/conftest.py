"""What all tests share."""

import gc
import os
import sys
import time
from pathlib import Path
from unittest import mock

import huggingface_hub.constants  # noqa: F401 - it reads the environment once, and jobs in this process change that
import hypothesis
import pytest

from entropy_valley import machine

gc.disable()  # until all tests are imported
# What torch compiles, it compiles in one process, in plain C++: it tries no vector instructions of this CPU before.
os.environ.update(TORCHINDUCTOR_COMPILE_THREADS="1", TORCHINDUCTOR_VEC_ISA_OK="0")

# An example may take long because the machine is busy: that is no failure. Forty of them find what a hundred do, for
# they are others each time.
hypothesis.settings.register_profile("busy", deadline=None, max_examples=40)
hypothesis.settings.load_profile("busy")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Caches of the tests' own: none reads the user's, or writes to them. Torch's compiler keeps kernels that another
    torch, or another ATEN_CPU_CAPABILITY, has made."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ENTROPY_VALLEY_CACHE", "TORCHINDUCTOR_CACHE_DIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def users_class(tmp_path, monkeypatch):
    """Write a module of the user's, ``mine.py``; the name of its class ``Mine`` for the config."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    def write(code):
        (tmp_path / "mine.py").write_text(code)
        return "mine:Mine"

    return write


@pytest.fixture
def reach(monkeypatch):
    """Point this process to another hub; huggingface_hub tries again at once where nothing answers."""

    def point_to(url):
        monkeypatch.setattr("huggingface_hub.utils._http.time", mock.Mock(wraps=time, sleep=lambda seconds: None))
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
        template = url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.file_download.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    return point_to


@pytest.fixture
def joined(process_group, monkeypatch):
    """Let trainings in this process use the group that it is in."""
    from entropy_valley.training import processes

    monkeypatch.setattr(processes, "join", lambda device, count: 0)
    monkeypatch.setattr(processes, "leave", lambda: None)


@pytest.fixture(scope="session")
def process_group():
    """This process as the only one of a training; torch takes no second group."""
    from entropy_valley.training import processes

    assert processes.join("cpu", 1) == 0
    yield
    processes.leave()


SCONTROL = """#!/bin/sh
echo "$*" >> '{calls}'
[ $1 = requeue ] && {requeue} || echo "   StartTime=0 EndTime=$(($(date +%s) + {left})) Deadline=N/A"
"""


class Requeued(BaseException):
    """Stands for the end of a job that waits for it."""


class SlurmJob:
    """A SLURM job that is requeued 300 seconds before its end, and its `scontrol`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._calls = folder, folder / "calls"
        self.ends_in(3600)

    def ends_in(self, seconds: int, requeue: str = "exit 0") -> None:
        program = self._folder / "scontrol"
        program.write_text(SCONTROL.format(calls=self._calls, left=seconds, requeue=requeue))
        program.chmod(0o755)
        machine._next_look = 0.0

    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture
def slurm_job(tmp_path_factory, monkeypatch):
    """This process as the job 7; Requeued is raised where it waits for its end."""
    job = SlurmJob(tmp_path_factory.mktemp("slurm"))
    monkeypatch.setenv("PATH", f"{job._folder}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv(machine.REQUEUE, "300")
    monkeypatch.setattr(machine, "time", mock.Mock(wraps=time, sleep=mock.Mock(side_effect=Requeued)))
    return job


def pytest_addoption(parser):
    parser.addoption("--renew", action="store_true", help="write golden files again, and config/schema.json")


def pytest_collection_finish():
    """What has been imported stays: looking for garbage in it, again and again, takes a tenth of the tests' time."""
    gc.freeze()
    gc.enable()


LONG = ("slow", "cluster")  # markers
LONGEST = ["test_smallest_demo.py", "test_finished_run.py"]  # files, of which each takes a minute


def pytest_collection_modifyitems(items):
    """The longest files first, then whole workflows: at the end the workers share short ones."""

    def place(item):
        name, short = item.path.name, not any(map(item.get_closest_marker, LONG))
        return LONGEST.index(name) if name in LONGEST else len(LONGEST), short, "workflow" not in item.path.parts

    items.sort(key=place)
