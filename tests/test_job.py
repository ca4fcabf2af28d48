"""How the job of a script begins and ends: its params, its log, its signals, and the GPUs that it takes."""

import json
import os
import pickle
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from run_rule import snakemake_object

from entropy_valley import machine as gpus
from entropy_valley.errors import InputError
from entropy_valley.experiment.runs import job as jobs

# Names that no other test claims.
UUIDS = [f"GPU-{number}{os.getpid()}" for number in range(8)]
EIGHT = "".join(f"{i}, {uuid}, NVIDIA H100 80GB HBM3\n" for i, uuid in enumerate(UUIDS))
SCRIPT = """
import os, pickle, subprocess, sys, time
from pathlib import Path
from entropy_valley.experiment.runs.job import job_of

terminal, snakemake = os.dup(1), pickle.loads(bytes.fromhex(sys.argv[1]))
with job_of(snakemake) as job:
{}
"""
# Says which GPUs it sees, waits until a file is there, and says that it has ended.
ON_GPU = """
os.write(terminal, f"{os.environ.get('CUDA_VISIBLE_DEVICES')}\\n".encode())
while not Path(job.execution["go"]).exists(): time.sleep(0.01)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with eight GPUs, as its nvidia-smi says."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<END\n{EIGHT}END\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for name in (gpus.VISIBLE, *gpus.SCHEDULERS):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a script whose block is ``code``, its log at ``x y.log``; what still runs at the end is killed."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    started = []

    def run(code, *, spec=None, log=tmp_path / "logs/x y.log", **given):
        given = json.loads(json.dumps(given, default=str))
        snakemake = pickle.dumps(snakemake_object("rule", spec or {}, log=log, **given)).hex()
        command = [sys.executable, "-c", SCRIPT.format(textwrap.indent(code.strip(), "    ")), snakemake]
        started.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def log_of(process, folder):
    """What it has said at its end: in its log, and nowhere else."""
    assert process.communicate() == ("", "")
    return (folder / "logs/x y.log").read_text()


def test_all_that_a_script_and_its_children_say_is_in_the_log(start, tmp_path):
    code = "print('out'); subprocess.run('echo child; echo error >&2', shell=True); print(sys.stdin.read(), 'in')"
    process = start(code)
    assert log_of(process, tmp_path) == "out\nchild\nerror\n in\n"
    assert process.returncode == 0


@pytest.mark.parametrize(("execution", "offline"), [({"d": [2]}, "1"), ({"confirm": False}, "None")])
def test_only_a_job_that_may_download_asks_the_network(start, tmp_path, monkeypatch, execution, offline):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    spec, code = {"a": 1, "made_from": {"b": "c"}}, "print(job.params, job.spec, os.environ.get('HF_HUB_OFFLINE'))"
    process = start(code, spec=spec, execution=execution)
    assert log_of(process, tmp_path) == f"{spec} {{'a': 1}} {offline}\n"


def test_bad_input_is_one_line(start, tmp_path):
    process = start("from entropy_valley.errors import InputError; raise InputError('here', 'wrong', 'Do it.')")
    assert log_of(process, tmp_path) == "error: here: wrong. Do it.\n"
    assert process.returncode == 2


def test_any_other_error_has_its_traceback_in_the_log(start, tmp_path):
    process = start("1 / 0")
    assert log_of(process, tmp_path).endswith("ZeroDivisionError: division by zero\n")
    assert process.returncode == 1


def one_child(pid):
    """A process that this one has started; waits for it."""
    while not (children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        time.sleep(0.01)
    return int(children[0])


def waits_for(text, log):
    """Wait until a log has a text."""
    while not log.exists() or text not in log.read_text():
        time.sleep(0.01)


def ended(pid):
    """Wait until a process is gone; a test that hangs has found one that is not."""
    while (status := Path(f"/proc/{pid}/stat")).exists() and status.read_text().split()[2] != "Z":
        time.sleep(0.01)


def test_a_module_finds_what_this_process_finds_and_ends_with_it(start, tmp_path, monkeypatch):
    (tmp_path / "ours.py").write_text("import sys, time; time.sleep(float(sys.argv[1])); sys.exit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    assert gpus.run_module("ours", "0") == 3
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    parent = start("from entropy_valley import machine; print('begun'); machine.run_module('ours', '600')")
    waits_for("begun", tmp_path / "logs/x y.log")
    child = one_child(parent.pid)
    time.sleep(0.1)
    parent.kill()
    ended(child)


def test_concurrent_jobs_take_distinct_gpus_and_the_ninth_waits(start, machine):
    go, jobs = machine / "go", []
    for number, count in enumerate([1, 1, 2, 1, 3]):
        jobs.append(start(ON_GPU, execution={"go": go}, gpu=count, log=machine / f"{number}.log"))
    seen = [job.stdout.readline().strip().split(",") for job in jobs]
    assert [len(one) for one in seen] == [1, 1, 2, 1, 3]
    assert len({gpu for one in seen for gpu in one}) == 8
    late = start(ON_GPU, execution={"go": go}, gpu=1, log=machine / "late.log")
    waits_for("waiting: ", machine / "late.log")
    jobs[0].kill()
    assert late.stdout.readline().strip().split(",") == seen[0]
    go.touch()
    assert late.wait() == 0
    assert "on NVIDIA H100 80GB HBM3 (GPU-" in (machine / "late.log").read_text()


def test_two_jobs_that_want_more_than_there_are_do_not_wait_for_each_other(start, machine):
    go = machine / "go"
    go.touch()
    jobs = [start(ON_GPU, execution={"go": go}, gpu=5, log=machine / f"{number}.log") for number in range(3)]
    assert [job.wait() for job in jobs] == [0, 0, 0]


def test_more_gpus_than_there_are_is_an_error(start, machine):
    process = start("print('begun')", gpu=9)
    assert log_of(process, machine).startswith("error: GPUs: 9 wanted, 8 on this machine. ")
    assert process.returncode == 2


def test_an_environment_is_checked_once_on_each_kind_of_gpu(monkeypatch, tmp_path):
    done = []

    def check(module, subject, out):
        done.append((module, json.loads(subject)))
        Path(out).write_text("ok")
        return 0

    monkeypatch.setattr(gpus, "run_module", check)
    monkeypatch.setattr(gpus, "device_name", lambda device: "cuda NVIDIA H100")
    subject = {"device": "cuda", "processes": 1}
    for _ in range(2):
        jobs.require_checked(str(tmp_path / "checks"), subject)
    assert done == [("entropy_valley.experiment.checking", subject)]
    monkeypatch.setattr(gpus, "device_name", lambda device: "cuda NVIDIA A100")
    monkeypatch.setattr(gpus, "run_module", lambda *_: 1)
    for _ in range(2):
        with pytest.raises(InputError, match="check: this machine does not run the jobs of this config"):
            jobs.require_checked(str(tmp_path / "checks"), subject)


def given(count, **variables):
    """What CUDA_VISIBLE_DEVICES becomes for a job with these environment variables."""
    claims = gpus.claimed(count, variables)
    for claim in claims.values():
        claim.close()
    return ",".join(gpu.visible for gpu in claims) or "as it was"


@pytest.mark.parametrize(
    ("count", "variables"),
    [
        (1, {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "5"}),
        (8, {"SLURM_JOB_ID": "7"}),
        (1, {"CUDA_VISIBLE_DEVICES": ""}),
    ],
)
def test_what_a_scheduler_assigns_and_jobs_without_gpus_are_left_alone(machine, count, variables):
    assert given(count, **variables) == "as it was"


def test_an_allocation_of_several_gpus_is_shared_out(machine):
    ((gpu, claim),) = gpus.claimed(1, {"SLURM_JOB_ID": "7", gpus.VISIBLE: "2,5"}).items()
    with claim:
        assert gpu.visible == "2"
        assert given(1, SLURM_JOB_ID="7", CUDA_VISIBLE_DEVICES="2,5") == "5"


def test_gpus_are_named_by_uuid_or_as_the_user_names_them(machine):
    assert given(1) == UUIDS[0]
    assert given(2, CUDA_VISIBLE_DEVICES="3,1") == "3,1"
    ((gpu, claim),) = gpus.claimed(1, {gpus.VISIBLE: UUIDS[3]}).items()
    with claim:
        assert gpu.visible == UUIDS[3]
        assert given(1, CUDA_VISIBLE_DEVICES="3,1") == "1"  # one GPU has two names


def test_a_part_of_a_divided_gpu_keeps_the_users_name(machine):
    assert given(1, CUDA_VISIBLE_DEVICES=f"MIG-{UUIDS[0]}") == f"MIG-{UUIDS[0]}"
