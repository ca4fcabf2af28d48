"""The error of `device: cuda` where no GPU can be used, from what `nvidia-smi` and the driver say."""

from __future__ import annotations

import pytest

from entropy_valley import driver
from entropy_valley.driver import Machine
from entropy_valley.errors import InputError

A100 = "NVIDIA A100-SXM4-80GB"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """This machine, were its `nvidia-smi` to print these rows, and torch built for that CUDA."""

    def make(rows, cuda, loaded="", models=()):
        program = tmp_path / "nvidia-smi"
        program.write_text("#!/bin/sh\n" + ("".join(f"echo '{row}'\n" for row in rows) if rows else "exit 9\n"))
        program.chmod(0o755)
        (tmp_path / "version").write_text(loaded)
        for number, name in enumerate(models):
            (tmp_path / f"gpus/0000:0{number}:00.0").mkdir(parents=True)
            (tmp_path / f"gpus/0000:0{number}:00.0/information").write_text(f"Model: \t\t {name}\nIRQ:   \t\t 17\n")
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        monkeypatch.setattr(driver, "_DRIVER", tmp_path)
        monkeypatch.setattr(driver, "_cuda", lambda: cuda)
        return Machine.here()

    return make


def test_a_usable_gpu(machine):
    here = machine([f"550.54.15, {A100}"] * 2, "12.6")
    assert (here.driver, here.gpus, here.problem()) == ("550.54.15", (A100, A100), None)
    here.require_gpu()


@pytest.mark.parametrize(
    ("rows", "cuda", "problem"),
    [
        ([f"550.54.15, {A100}"], None, r"cannot use a GPU\..* is a CPU build; .*driver 550.54.15 and 1 × .*=cu126`"),
        ([f"580.65.06, {A100}"], None, r"make install CUDA=cu130`"),
        ([f"550.54.15, {A100}"], "13.0", r"too old: CUDA 13.0 needs 580.65.06 or later.*CUDA=cu126`"),
        ([f"525.60.11, {A100}"], "12.6", r"too old: CUDA 12.6 needs 525.60.13 or later.*update the driver"),
        ([], "12.6", r"^device: cuda: the NVIDIA driver is missing.*CUDA 12.6; .* no .*driver and no GPU.*device: cpu"),
    ],
)  # fmt: skip
def test_the_error_names_driver_build_and_remedy(machine, rows, cuda, problem):
    with pytest.raises(InputError, match=problem):
        machine(rows, cuda).require_gpu()


def test_a_loaded_driver_without_a_gpu(machine):
    loaded = (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version: 12\n"
    )
    with pytest.raises(InputError, match=r"shows no GPU.*NVIDIA driver 550.54.15 and no GPU"):
        machine([], "12.6", loaded).require_gpu()
    opened = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    assert machine([], "12.6", opened).driver == "580.65.06"
    assert machine([], "12.6", opened, [A100, A100]).gpus == (A100, A100)  # in a container without `nvidia-smi`


def test_the_build_is_read_where_the_version_does_not_say_it(tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").touch()
    (tmp_path / "torch/version.py").write_text("__version__ = '2.13.0'\ncuda: Optional[str] = '13.0'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(driver.importlib.util.sys.modules, "torch", raising=False)
    assert driver._cuda() == "13.0"


def test_this_environments_own_build():
    import torch

    assert driver._cuda() == torch.version.cuda
