"""What a check says when it ends well, finds something, does not apply or breaks; and what comes of it."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from entropy_valley.errors import InputError
from entropy_valley.experiment import cli
from entropy_valley.experiment.checking import checks
from entropy_valley.experiment.checking.checks import FAILED, OK, SKIPPED, CheckError, SkippedError, run

ROOT = Path(__file__).parents[2]


def raising(error):
    def check(*_):
        raise error

    return check


def test_each_end_is_a_line(capsys):
    given = [
        lambda: "3 GB",
        raising(CheckError("no\n GPU")),
        raising(SkippedError("a CPU")),
        raising(ValueError("odd")),
    ]
    given += [raising(InputError("here", "wrong", "Mend it.")), raising(ModuleNotFoundError("no comet"))]
    lines = list(run([(f"check {number}", check) for number, check in enumerate(given)]))
    assert [line.state for line in lines] == [OK, FAILED, SKIPPED, FAILED, FAILED, FAILED]
    wrong = ["ValueError: odd", "here: wrong. Mend it.", "ModuleNotFoundError: no comet"]
    assert [line.text for line in lines] == ["3 GB", "no GPU", "a CPU", *wrong]
    assert "raise error" in capsys.readouterr().err  # where it broke
    assert checks.report([lines[0], lines[2]]) == [lines[0], lines[2]]
    with pytest.raises(SystemExit, match="1"):
        checks.report(lines)


def test_without_a_gpu_the_others_are_not_tried(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "init", raising(RuntimeError("The NVIDIA driver on your system is too old\nx")))
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "check"])  # device: cuda
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    torch_line, gpus_line = capsys.readouterr().out.splitlines()
    assert torch_line.startswith(OK) and gpus_line.startswith(FAILED)
    assert "driver on your system is too old. docs/running.md has the builds" in gpus_line


def test_a_gpu_without_the_precision_of_the_config_says_what_to_set(monkeypatch):
    turing = SimpleNamespace(name="Tesla T4", total_memory=15 * 10**9, major=7, minor=5)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: turing)
    assert checks.gpus("cuda", "float32") == "Tesla T4, 15.0 GB, 7.5"
    with pytest.raises(CheckError, match=r"no bfloat16\. Set `precision: float32`"):
        checks.gpus("cuda", "bfloat16")


def test_an_installation_of_another_build_fails(monkeypatch, capsys):
    wanted = "cu126" if torch.version.cuda is None else "cpu"
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "check", "--installation", wanted])
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    assert f"make install CUDA={wanted}" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "check", "--installation"])
    monkeypatch.setattr(torch.cuda, "init", raising(RuntimeError("Found no NVIDIA driver on your system.")))
    cli.main()
    assert "Found no NVIDIA driver" in capsys.readouterr().out
