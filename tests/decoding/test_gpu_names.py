"""The GPU's model in the store's keys.

There is no GPU here: a model that is asked for on one runs on the CPU, and ``nvidia-smi`` is a list of names.
"""

import dataclasses

import pytest
from bench import Bench

from entropy_valley import machine as gpus
from entropy_valley.model import load as loading

H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"


@pytest.fixture
def machine(monkeypatch):
    """A function that gives this machine other GPUs, by their names; at first it has none."""

    def has(*names):
        listed = "".join(f"{place}, GPU-{place}, {name}\n" for place, name in enumerate(names))
        monkeypatch.setattr(gpus, "nvidia_smi", lambda: listed)

    has()
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    load = loading.load_backbone
    monkeypatch.setattr(loading, "load_backbone", lambda *given, device, **how: load(*given, device="cpu", **how))
    return has


@pytest.fixture
def bench(tmp_path, checkpoints, testset, machine):
    bench = Bench(tmp_path, checkpoints, testset)
    bench.spec["batch_invariant"] = False  # a CPU's budget is another
    bench.execution = dataclasses.replace(bench.execution, device="cuda")
    return bench


def computed(bench):
    return bench.ledgers()[-1]["computed"]


def test_another_gpu_computes_again_and_the_same_one_does_not(bench, machine):
    machine(H100)
    bench.canvas("ev")
    assert computed(bench)
    machine(H100, A100)
    bench.canvas("ev")
    assert computed(bench) == 0
    machine(A100)
    bench.canvas("ev")
    assert computed(bench)


NAMES = {
    ("cpu", None): "cpu",
    ("cuda", None): f"cuda {H100}",
    ("cuda:1", None): f"cuda {A100}",
    ("cuda", "1"): f"cuda {A100}",
    ("cuda", "GPU-1"): f"cuda {A100}",
    ("cuda", "GPU-9"): "cuda",
}


@pytest.mark.parametrize(("given", "name"), NAMES.items(), ids=str)
def test_the_name_of_a_device(given, name, machine, monkeypatch):
    machine(H100, A100)
    device, visible = given
    if visible:
        monkeypatch.setenv(gpus.VISIBLE, visible)
    assert gpus.device_name(device) == name


def test_without_nvidia_smi_torch_is_asked(machine, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: A100)
    assert gpus.device_name("cuda") == f"cuda {A100}"
