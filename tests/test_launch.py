"""How the command of a job is started: its log, its end, its signals, and the GPUs that it takes."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from entropy_valley import gpus, launch, run, usage

EIGHT = "".join(f"GPU {i}: NVIDIA H100 80GB HBM3 (UUID: GPU-{i}{i}{i}{i}-beef)\n" for i in range(8))
# Says which GPUs it sees, waits until the file of its only argument is there, and says that it has ended.
JOB = """
import os, pathlib, sys, time
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)
"""
HEARING = """
import signal, time
signal.signal(signal.SIGINT, lambda *_: print("heard", flush=True))
print("ready", flush=True)
time.sleep(0.5)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with eight GPUs, as its nvidia-smi says."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<END\n{EIGHT}END\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv(gpus.LOCKS, str(tmp_path / "locks"))
    for name in (gpus.VISIBLE, *gpus.SCHEDULERS):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def start(tmp_path):
    """Launch ``python -c code arguments…`` with its log at ``x.log``; what still runs at the end is killed."""
    started = []

    def run(code, *arguments, count=0, log=tmp_path / "logs/x.log", results=None, **options):
        command = [sys.executable, "-c", code, *map(str, arguments)]
        table = [f"--results={results}"] if results else []
        process = subprocess.Popen(
            [sys.executable, "-m", "entropy_valley.launch", f"--log={log}", f"--gpus={count}", *table, "--", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def logs(folder):
    return {path.name: path.read_text() for path in sorted((folder / "logs").iterdir())}


def test_all_that_a_command_says_is_in_log_and_terminal_when_it_has_ended(start, tmp_path):
    said = "".join(f"line {i}\n" for i in range(20_000))
    process = start("import sys; sys.stderr.write(''.join(f'line {i}\\n' for i in range(20_000))); print('out')")
    assert process.communicate() == ("out\n", said)
    assert process.returncode == 0
    assert logs(tmp_path) == {"x.log": said}


def test_what_a_command_leaves_running_is_ended_and_its_last_words_are_kept(start, tmp_path):
    process = start("import os, sys, time; os.fork() or (time.sleep(0.3), sys.stderr.write('late'), time.sleep(600))")
    began = time.monotonic()
    process.communicate()
    assert time.monotonic() - began < 60
    assert logs(tmp_path) == {"x.log": "late"}


def test_each_failed_attempt_keeps_its_log(start, tmp_path):
    log = tmp_path / "logs/x.log"
    for attempt in ("one", "two"):
        process = start(f"import sys; sys.exit('{attempt}')")
        process.communicate()
        assert process.returncode == 1
        assert log.read_text() == f"{attempt}\n"
        log.unlink()  # as Snakemake does before the next attempt
    start("import sys; print('three', file=sys.stderr)").communicate()
    assert logs(tmp_path) == {"x.1.log": "one\n", "x.2.log": "two\n", "x.log": "three\n"}


def test_in_a_run_of_many_jobs_a_job_speaks_into_its_log_alone(start, tmp_path):
    process = start("import sys; sys.exit('gone')", env={**os.environ, launch.IN_LOGS: "1"})
    assert process.communicate() == ("", "") and process.returncode == 1
    assert logs(tmp_path)["x.1.log"] == "gone\n"


def test_a_repeated_job_that_succeeds_leaves_one_log(start, tmp_path):
    for attempt in ("one", "two"):
        start(f"import sys; print('{attempt}', file=sys.stderr)").communicate()
    assert logs(tmp_path) == {"x.log": "two\n"}


def test_a_file_system_without_links_has_the_newest_log(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)
    log = launch.Log(str(tmp_path / "logs/x.log"))
    log.say("one")
    log.finished()
    assert logs(tmp_path) == {"x.log": "one\n"}


def test_no_such_command(tmp_path):
    command = [sys.executable, "-m", "entropy_valley.launch", "--log", tmp_path / "logs/x.log", "--", "nowhere"]
    assert subprocess.run(command, capture_output=True).returncode == 127
    assert logs(tmp_path)["x.log"] == "error: nowhere: No such file or directory\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, 137)])
def test_a_command_that_a_signal_ends_is_reported_with_it(start, tmp_path, number, status):
    process = start(f"import os; os.kill(os.getpid(), {int(number)})")
    process.communicate()
    assert process.returncode == status
    assert f"error: ended by {number.name}" in logs(tmp_path)["x.log"]


def test_a_command_hears_of_a_signal_once(start):
    process = start(HEARING, start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.communicate()[0] == "heard\n"
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_cancelled_job_leaves_nothing(start, tmp_path, number):
    process = start("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    child = int(process.stdout.readline())
    process.send_signal(number)
    process.communicate()
    ended(child)


def test_a_job_ends_with_the_process_that_started_it(tmp_path):
    command = [sys.executable, "-m", "entropy_valley.launch", f"--log={tmp_path / 'x.log'}", "--", "sleep", "600"]
    shell = f"import subprocess; subprocess.run({json.dumps(command)})"
    parent = subprocess.Popen([sys.executable, "-c", shell])
    while not (children := descendants(parent.pid, 2)):
        time.sleep(0.01)
    time.sleep(0.1)
    parent.kill()
    parent.wait()
    for child in children:
        ended(child)


def descendants(pid, generations):
    """The processes that this one has started, and those that they have; none before there are so many."""
    found = []
    for _ in range(generations):
        children = Path(f"/proc/{pid}/task/{pid}/children")
        started = children.read_text().split() if children.exists() else []
        if not started:
            return []
        pid = int(started[0])
        found.append(pid)
    return found


def ended(pid):
    """Wait until a process is gone; a test that hangs has found one that is not."""
    while (status := Path(f"/proc/{pid}/stat")).exists() and status.read_text().split()[2] != "Z":
        time.sleep(0.01)


def test_concurrent_jobs_take_distinct_gpus_and_the_ninth_waits(start, machine):
    go, jobs = machine / "go", []
    for number, count in enumerate([1, 1, 2, 1, 3]):
        jobs.append(start(JOB, go, count=count, log=machine / f"{number}.log"))
    seen = [job.stdout.readline().strip().split(",") for job in jobs]
    assert [len(one) for one in seen] == [1, 1, 2, 1, 3]
    assert len({gpu for one in seen for gpu in one}) == 8
    late = start(JOB, go, count=1, log=machine / "late.log")
    waits_in(machine / "late.log")
    jobs[0].kill()
    assert late.stdout.readline().strip().split(",") == seen[0]
    go.touch()
    assert late.wait() == 0
    assert "on NVIDIA H100 80GB HBM3 (GPU-" in (machine / "late.log").read_text()


def test_a_job_that_wants_all_gpus_gets_them_before_later_jobs(start, machine):
    first, second = machine / "first", machine / "second"
    one = start(JOB, first, count=1, log=machine / "one.log")
    one.stdout.readline()
    every = start(JOB, second, count=8, log=machine / "every.log")
    waits_in(machine / "every.log")
    later = start(JOB, second, count=1, log=machine / "later.log")
    waits_in(machine / "later.log")
    first.touch()
    assert len(every.stdout.readline().split(",")) == 8
    second.touch()
    assert [job.wait() for job in (one, every, later)] == [0, 0, 0]


def waits_in(log):
    while not log.exists() or "waiting: " not in log.read_text():
        time.sleep(0.01)


def test_a_waiting_job_can_be_cancelled(start, machine):
    start(JOB, machine / "never", count=8, log=machine / "one.log").stdout.readline()
    waiting = start(JOB, machine / "never", count=1, log=machine / "two.log")
    waits_in(machine / "two.log")
    waiting.terminate()
    assert waiting.wait() == 143


def test_more_gpus_than_there_are_is_an_error(start, machine):
    process = start("", count=9)
    said = process.communicate()[1]
    assert process.returncode == 2
    assert said.startswith("error: GPUs: 9 wanted, 8 on this machine. ")


def given(count, **variables):
    """What CUDA_VISIBLE_DEVICES becomes for a job with these environment variables."""
    with gpus.taken(count, variables, lambda text: None) as (found, _):
        return found.get(gpus.VISIBLE, "as it was")


def test_a_scheduler_that_assigns_gpus_is_left_alone(machine):
    assert given(1, SLURM_JOB_ID="7", CUDA_VISIBLE_DEVICES="5") == "as it was"
    assert given(8, SLURM_JOB_ID="7") == "as it was"


def test_an_allocation_of_several_gpus_is_shared_out(machine):
    with gpus.taken(1, {"SLURM_JOB_ID": "7", gpus.VISIBLE: "2,5"}, print) as (first, _):
        assert first == {gpus.VISIBLE: "2"}
        assert given(1, SLURM_JOB_ID="7", CUDA_VISIBLE_DEVICES="2,5") == "5"


def test_a_job_without_gpus_or_on_a_machine_without_any_is_left_alone(machine, monkeypatch):
    assert given(0) == "as it was"
    assert given(1, CUDA_VISIBLE_DEVICES="") == "as it was"
    monkeypatch.setattr(gpus, "nvidia_smi", lambda: "")
    monkeypatch.setattr(gpus, "loaded", lambda: [])
    assert given(2) == "as it was"


def test_gpus_are_named_by_uuid_or_as_the_user_names_them(machine):
    assert given(1) == "GPU-0000-beef"
    assert given(2, CUDA_VISIBLE_DEVICES="3,1") == "3,1"
    with gpus.taken(1, {gpus.VISIBLE: "GPU-3333"}, print) as (one, _):
        assert one == {gpus.VISIBLE: "GPU-3333"}
        assert given(1, CUDA_VISIBLE_DEVICES="3,1") == "1"  # one lock for two names


@pytest.mark.parametrize(
    ("count", "given", "seen"),
    [
        (0, {}, [None, None]),
        (1, {}, ["expandable_segments:True", None]),
        (1, {"PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}, ["max_split_size_mb:64", None]),
        (1, {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}, [None, "max_split_size_mb:64"]),
    ],
)
def test_memory_of_a_gpu_grows_in_segments_unless_the_user_says_otherwise(start, machine, count, given, seen):
    environment = {name: value for name, value in os.environ.items() if name not in launch.ALLOCATOR} | given
    said = start(
        f"import os; print([os.environ.get(name) for name in {launch.ALLOCATOR}])", count=count, env=environment
    )
    assert said.communicate()[0] == f"{seen}\n"


def test_the_parts_of_a_divided_gpu_are_gpus():
    text = (
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-a)\n  MIG 3g.20gb     Device  0: (UUID: MIG-b)\n"
        "  MIG 3g.20gb     Device  1: (UUID: MIG-c)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-d)\n"
    )
    assert gpus.listed(text) == [
        ("MIG-b", "NVIDIA A100-SXM4-40GB MIG 3g.20gb"),
        ("MIG-c", "NVIDIA A100-SXM4-40GB MIG 3g.20gb"),
        ("GPU-d", "NVIDIA A100-SXM4-40GB"),
    ]


def test_each_attempt_adds_what_it_took_to_a_table(start, tmp_path):
    hold = (
        "import os, sys; x = bytearray(100_000_000); open(os.environ['ENTROPY_VALLEY_GPU_USE'], 'w').write('H100\\t77')"
    )
    for code in (f"{hold}; sys.exit(3)", "pass"):
        start(code, count=0, results=tmp_path).communicate()
    with open(tmp_path / "benchmarks/x.tsv", newline="") as file:
        failed, done = csv.DictReader(file, delimiter="\t")
    assert (failed["status"], failed["gpu"], failed["gpu_peak_mb"]) == ("3", "H100", "77")
    assert (done["status"], done["gpu"], done["gpu_peak_mb"]) == ("0", "", "")
    assert 100 < float(failed["max_rss_mb"]) < 200 and float(done["max_rss_mb"]) < 60
    assert all(float(one["s"]) > 0 and float(one["cpu_s"]) > 0 for one in (failed, done))
    assert [path.name for path in (tmp_path / "benchmarks").iterdir()] == ["x.tsv"]


def test_a_script_leaves_what_it_took_of_a_gpu(tmp_path, monkeypatch, capsys):
    cuda = SimpleNamespace(
        is_initialized=lambda: True, get_device_name=lambda: "NVIDIA H100", max_memory_reserved=lambda: 17_900_000_000
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setenv(usage.HANDED_DOWN, str(tmp_path / "use"))
    monkeypatch.delenv(run.HANDED_DOWN, raising=False)
    with pytest.raises(ZeroDivisionError):
        run.script(lambda: 1 / 0)  # what ran out of memory is what one wants to know
    assert (tmp_path / "use").read_text() == "NVIDIA H100\t17900"
    assert capsys.readouterr().err == "GPU: NVIDIA H100, at most 17900 MB\n"


def test_without_nvidia_smi_the_driver_names_the_gpus_of_a_container(tmp_path):
    uuids = ["GPU-a", "GPU-b", "GPU-????????"]
    for minor, uuid in enumerate(uuids):
        folder = tmp_path / f"proc/driver/nvidia/gpus/0000:0{minor}:00.0"
        folder.mkdir(parents=True)
        lines = (
            f"Model: \t\t NVIDIA H200\nGPU UUID: \t {uuid}\nBus Location: \t 0000:00:00.0\nDevice Minor: \t {minor}\n"
        )
        (folder / "information").write_text(lines)
    (tmp_path / "dev").mkdir()
    for minor in (1, 2):  # the first one is not the container's
        (tmp_path / f"dev/nvidia{minor}").touch()
    assert gpus.loaded(f"{tmp_path}/") == [("GPU-b", "NVIDIA H200"), ("1", "NVIDIA H200")]
    assert gpus.loaded(f"{tmp_path}/nowhere/") == []


def test_it_starts_without_what_takes_long_to_load():
    loaded = "import sys, entropy_valley.launch; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "pydantic", "filelock", "pathlib", "typing"} & set(names)
