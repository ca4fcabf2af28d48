"""The GPU's model in the store's keys, and jobs without a GPU that find what one has computed.

There is no GPU here: a model that is asked for on one runs on the CPU, and ``nvidia-smi`` is a list of names.
"""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from bench import Bench, run_without_torch

from entropy_valley import files, gpus
from entropy_valley.backbone import loading
from entropy_valley.engine.arguments import method_arguments
from entropy_valley.engine.job import Job

H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"


@pytest.fixture
def machine(monkeypatch):
    """A function that gives this machine other GPUs, by their names; at first it has none."""

    def has(*names):
        listed = "".join(f"GPU {place}: {name} (UUID: GPU-{place})\n" for place, name in enumerate(names))
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
    bench.common += ["--device", "cuda"]
    return bench


def computed(bench):
    return bench.ledgers()[-1]["computed"]


def test_another_gpu_computes_again_and_the_same_one_does_not(bench, machine):
    machine(H100)
    bench.canvas("ev")
    assert computed(bench)
    machine(H100, A100)
    bench.canvas("ev", out="again")
    assert computed(bench) == 0
    machine(A100)
    bench.canvas("ev", out="other")
    assert computed(bench)
    names = [files.read_json(path)["device"] for path in (bench.root / "store" / "devices").iterdir()]
    assert sorted(names) == [f"cuda {A100}", f"cuda {H100}"]


def test_a_job_without_a_gpu_takes_what_any_has_computed(bench, machine):
    """Canvases by one GPU, hypotheses by another; the last that computed is asked first."""
    machine(H100)
    bench.canvas("ev")
    machine(A100)
    bench.decode("ev")
    machine()
    canvases = bench.canvases.read_bytes()
    bench.canvas("ev", "--from-store")
    assert bench.canvases.read_bytes() == canvases and computed(bench) == 0
    rows = bench.out.read_bytes()
    assert bench.decode("ev", "--from-store", out="again")[0] == rows


def test_it_does_so_without_torch(bench, machine):
    machine(H100)
    bench.canvas("ev")
    machine()
    run_without_torch(bench.canvas_command("ev", "--from-store", out="again"))


def test_what_no_gpu_has_computed_is_an_error(bench, machine):
    with pytest.raises(SystemExit):
        bench.canvas("ev", "--from-store")


def test_on_a_cpu_the_names_of_results_are_those_of_ever(bench):
    """The values of a user's store are found again."""
    options = method_arguments("").parse_args([json.dumps(bench.spec), "--out", "out", *map(str, bench.common)])
    options.device = "cpu"
    with Job(options) as job:
        assert job.numerics == job.model_numerics == f"unshifted|float32|cpu|torch {version('torch')}"
        assert job.others == []


def test_a_cpu_leaves_no_name(bench):
    bench.common[bench.common.index("cuda")] = "cpu"
    bench.canvas("ev")
    assert computed(bench) and not (bench.root / "store" / "devices").exists()


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
