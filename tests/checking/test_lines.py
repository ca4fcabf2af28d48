"""What a check says when it ends well, finds something, does not apply or breaks; and what comes of it."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest
import torch

from entropy_valley import cli, driver
from entropy_valley.checking import checks, group, machine, speed
from entropy_valley.checking.line import FAILED, OK, SKIPPED, CheckError, Line, SkippedError, run
from entropy_valley.driver import Machine
from entropy_valley.errors import InputError


def raising(error):
    def check():
        raise error

    return check


def test_each_end_is_a_line(capsys):
    given = [
        lambda: "3 GB",
        raising(CheckError("no\n GPU")),
        raising(SkippedError("a CPU")),
        raising(ValueError("odd")),
    ]
    given.append(raising(InputError("here", "wrong", "Mend it.")))
    lines = list(run([(f"check {number}", check) for number, check in enumerate(given)]))
    assert [line.state for line in lines] == [OK, FAILED, SKIPPED, FAILED, FAILED]
    assert [line.text for line in lines] == ["3 GB", "no GPU", "a CPU", "ValueError: odd", "here: wrong. Mend it."]
    assert "raise error" in capsys.readouterr().err  # where it broke


@pytest.mark.parametrize(("state", "status"), [(OK, 0), (SKIPPED, 0), (FAILED, 1)])
def test_a_failure_is_the_exit_status(state, status):
    lines, said = [Line("one", OK, "1", 0.1), Line("two", state, "2", 0.2)], io.StringIO()
    if status:
        with pytest.raises(SystemExit, match="1"):
            checks.report(lines, said)
    else:
        assert checks.report(lines, said) == lines
    assert said.getvalue().splitlines() == [str(line) for line in lines]


def test_without_a_gpu_the_others_are_not_tried(monkeypatch, capsys):
    monkeypatch.setattr(Machine, "here", lambda: Machine("2.13.0", "12.6", "470.57", ("Tesla T4",)))
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "check"])  # device: cuda
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    *_, torch_line, driver_line, rest = capsys.readouterr().out.splitlines()
    assert torch_line.startswith(OK) and rest.startswith(SKIPPED)
    assert driver_line.startswith(FAILED) and "CUDA 12.6 needs 525.60.13" in driver_line and "470.57" in driver_line


def test_an_installation_of_another_build_fails(monkeypatch, capsys):
    wanted = "cu126" if torch.version.cuda is None else "cpu"
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "check", "--installation", wanted])
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    assert f"make install CUDA={wanted}" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "check", "--installation"])
    monkeypatch.setattr(Machine, "here", lambda: Machine("2.13.0", None, None, ()))
    cli.main()
    assert "no NVIDIA driver and no GPU" in capsys.readouterr().out


def test_a_build_without_kernels_for_the_gpu_fails():
    built = ["sm_75", "sm_80", "sm_90", "sm_120", "compute_120"]
    machine._require_kernels([(8, 6), (9, 0), (12, 1), (13, 0)], built)
    with pytest.raises(CheckError, match=r"capability \(7, 0\)"):
        machine._require_kernels([(8, 0), (7, 0)], built)
    with pytest.raises(CheckError, match=r"capability \(10, 0\)"):
        machine._require_kernels([(10, 0)], ["sm_80", "sm_90"])


def test_two_gpus_are_named_with_their_memory(monkeypatch):
    gpu = SimpleNamespace(name="NVIDIA A100-SXM4-80GB", total_memory=85e9, major=8, minor=0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: gpu)
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_80"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert machine.device_memory("cuda") == "; ".join(["NVIDIA A100-SXM4-80GB, 85.0 GB, 8.0"] * 2)
    assert machine.memory("cuda") == 85e9
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(CheckError, match="torch finds no GPU: CUDA_VISIBLE_DEVICES is ''"):
        machine.device_memory("cuda")


def test_waits_for_the_gpu_are_counted(monkeypatch):
    """As torch warns of them."""
    modes = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)

    def task():
        for _ in range(3):
            warnings.warn("called a synchronizing CUDA operation (Triggered internally …)", stacklevel=1)
        warnings.warn("something else", stacklevel=1)

    assert speed.waits(task) == 3
    assert modes == ["warn", "default"]


def test_processes_that_wait_for_each_other_end_with_all_they_started(monkeypatch):
    monkeypatch.setattr(group, "TIMEOUT", 0.5)
    status, said = group._bounded(["bash", "-c", "echo begun; sleep 61.75 & sleep 61.75"])
    assert status < 0 and said == "begun\n"
    assert not subprocess.run(["pgrep", "-f", "sleep 61.75"], capture_output=True).stdout


def test_the_error_of_a_worker_is_named(tmp_path, monkeypatch, capsys):
    said = "Traceback:\nRuntimeError: NCCL broke\ntorch.distributed.elastic.ChildFailedError: \n=====\n"
    monkeypatch.setattr(group, "_bounded", lambda command: (1, said))
    processes = group.Group(tmp_path / "group", "cpu", 2, "float32")
    for question in (processes.exchange, processes.training):
        with pytest.raises(CheckError, match="the processes failed: RuntimeError: NCCL broke"):
            question()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(CheckError, match="1 GPUs for the 4 processes"):
        group.Group(tmp_path / "four", "cuda", 4, "float32").exchange()


def test_make_install_takes_the_build_that_was_asked_for(tmp_path):
    def commands(*arguments):
        made = ["make", "-n", "install", f"VENV={tmp_path}", *arguments]
        return subprocess.run(made, capture_output=True, text=True, check=True).stdout

    asked = commands("CUDA=cu126")
    version = driver.torch_build().split("+")[0].split()[0]
    assert f'"torch=={version}+cu126" --index-url https://download.pytorch.org/whl/cu126' in asked
    assert "--installation cu126" in asked
    assert f'"torch=={version}" \n' in commands()
    (tmp_path / ".cuda").write_text("cu126\n")
    assert commands() == asked
