"""The process group: on GPUs each process takes its own before NCCL connects."""

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
def test_the_group_is_formed_on_the_gpu_of_the_process(calls, count, number):
    processes.join("cuda", count)
    gpu = torch.device("cuda", number)
    assert calls == [("set_device", gpu), ("nccl", gpu)]


def test_too_few_gpus():
    with pytest.raises(InputError, match="GPUs wanted"):
        processes.join("cuda", torch.cuda.device_count() + 1)


def test_processes_of_one_machine_meet_at_its_own_address(monkeypatch):
    """Its full name may not resolve."""
    calls = []
    monkeypatch.setattr(processes, "run_module", lambda *arguments: calls.append(arguments))
    processes.launch(2, "worker", "job")
    assert calls[0][-3:] == ("--module", "worker", "job")
    assert {"--standalone", "--local-addr", "127.0.0.1"} < set(calls[0])
