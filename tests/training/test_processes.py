"""The process group: on GPUs each process takes its own before NCCL connects."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from entropy_valley.errors import InputError
from entropy_valley.training import processes


@pytest.fixture
def calls(monkeypatch):
    """What a process of a machine with two GPUs asks of torch, in order."""
    calls = []
    for name in ("DS_ACCELERATOR", "RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: calls.append(("set_device", device)))
    monkeypatch.setattr(processes, "end_with_parent", lambda *_: None)
    form = lambda backend, **options: calls.append((backend, options.get("device_id")))  # noqa: E731
    monkeypatch.setattr(torch.distributed, "init_process_group", form)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    return calls


@pytest.mark.parametrize(("count", "number"), [(1, 0), (2, 1)])
def test_the_group_is_formed_on_the_gpu_of_the_process(calls, monkeypatch, count, number):
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: count)
    processes.join("cuda", count)
    gpu = torch.device("cuda", number)
    assert calls == [("set_device", gpu), ("nccl", gpu)]


def test_on_a_cpu_there_is_no_device_to_name(calls, monkeypatch):
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    processes.join("cpu", 2)
    assert calls == [("gloo", None)]


@pytest.mark.slow
def test_processes_find_each_other_where_the_name_of_the_machine_does_not_resolve(tmp_path):
    (tmp_path / "worker.py").write_text("import os\nprint(os.environ['MASTER_ADDR'])\n")
    code = "from entropy_valley.training import processes; processes.launch(2, 'worker')"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "127.0.0.1\n" * 2


def test_too_few_gpus():
    with pytest.raises(InputError, match="GPUs wanted"):
        processes.join("cuda", torch.cuda.device_count() + 1)
