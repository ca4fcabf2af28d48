"""What a run is told to lack: more than there is, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley import limits
from entropy_valley.checking import line, machine, needs
from entropy_valley.experiment import base_files, load_files
from entropy_valley.experiment.matrix import Cell, Run
from entropy_valley.runs.inventory import Job

RUN = {"backbone": "llada-8b", "direction": "en-zh", "seed": "1"}
CELL = Cell(Run.named("en-zh", "llada-8b", "seed1"), "wmt22", "ev", "med", 32)


def job(rule, wildcards=RUN, outputs=("results/out",), cells=()):
    return Job(rule, wildcards, outputs, "{}", cells=cells)


DOWNLOADS = [job("fetch_backbone"), job("fetch_comet", {"checkpoint": "Unbabel--wmt22-comet-da@2760a223"})]
JOBS = [*DOWNLOADS, job("corpus"), job("train"), job("train"), job("translate", cells=(CELL,))]


@pytest.fixture(scope="module")
def paper():
    return load_files(base_files(Path(__file__).parents[2]))


@pytest.fixture(autouse=True)
def plenty(monkeypatch, tmp_path):
    """A machine without anything, that has room for all."""
    monkeypatch.chdir(tmp_path)
    for name in ("free", "memory"):
        monkeypatch.setattr(limits, name, lambda *_: 10**12)


def problems(experiment, jobs):
    """The checks that fail, with their text."""
    return [(one.name, one.text) for one in line.run(needs.checks(experiment, jobs, 16)) if one.state == line.FAILED]


def on_cpu(experiment, **more):
    return experiment.model_copy(update={"device": "cpu", **more})


def test_where_there_is_room_nothing_fails(paper):
    assert problems(paper, JOBS) == problems(on_cpu(paper), JOBS) == problems(paper, []) == []


def test_disk_has_the_number_needed_and_the_number_there(paper, monkeypatch, tmp_path):
    """16 GB of LLaDA; 168 million parameters of an adapter: 4 bytes of each in two runs, 32 in checkpoints of one."""
    monkeypatch.setattr(limits, "free", lambda folder: int(20e9))
    ((name, said),) = problems(paper, JOBS)
    assert name == "disk" and said.startswith(
        "needs an estimated 25.2 GB or more (downloaded models 16.0 GB, checkpoints of a trai"
    )
    assert "adapters 1.3 GB" in said and "COMET 2.3 GB" in said
    assert f"20.0 GB are free in {tmp_path}. Free 5.2 GB" in said
    for folder in ("llada-8b", "Unbabel--wmt22-comet-da@2760a223"):
        Path("models", folder).mkdir(parents=True)
    assert problems(paper, JOBS) == []  # what is there is not downloaded


def test_each_file_system_is_looked_at_alone(paper, monkeypatch):
    monkeypatch.setattr(limits, "device", lambda folder: folder == paper.models)
    monkeypatch.setattr(limits, "free", lambda folder: int(17e9))
    ((_, said),) = problems(paper, JOBS)
    assert "needs an estimated 18.4 GB or more (downloaded models 16.0 GB, COMET 2.3 GB), 17.0 GB" in said


def test_memory_is_that_of_the_largest_job_on_this_machine(paper, monkeypatch):
    monkeypatch.setattr(limits, "memory", lambda: int(16e9))
    ((name, said),) = problems(on_cpu(paper), JOBS)
    assert name == "memory"
    assert "llada-8b in bfloat16 (rule train) needs an estimated 20.1 GB or more, this machine has 16.0 GB" in said
    assert problems(paper, JOBS) == []  # other checks look at GPUs
    many = paper.corpus.model_copy(update={"train": 10_000_000})
    ((_, said),) = problems(paper.model_copy(update={"corpus": many}), [job("corpus")])
    assert "drawing 20,004,000 training pairs (en-zh) needs an estimated 20.0 GB or more" in said
    own = paper.sources["wmt19-zh-en"].model_copy(update={"rows": 1000})  # it has fewer than the config allows
    fewer = paper.model_copy(update={"corpus": many, "sources": {**paper.sources, "wmt19-zh-en": own}})
    assert problems(fewer, [job("corpus")]) == []


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    monkeypatch.undo()
    (tmp_path / "cgroup").write_text("0::/job/step\n")
    for folder, limit in (("", "max"), ("job", "2000000"), ("job/step", "max")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "memory.max").write_text(f"{limit}\n")
    monkeypatch.setattr(limits, "CGROUP", tmp_path)
    monkeypatch.setattr(limits, "OF_PROCESS", tmp_path / "cgroup")
    assert limits.memory() == machine.memory("cpu") == 2_000_000
    (tmp_path / "cgroup").write_text("4:memory:/old\n2:cpu:/job\n")
    (tmp_path / "memory" / "old").mkdir(parents=True)
    (tmp_path / "memory" / "old" / "memory.limit_in_bytes").write_text("3000000\n")
    assert limits.memory() == 3_000_000


def test_open_files(monkeypatch):
    monkeypatch.setattr(limits, "open_files", lambda: 100)
    assert list(needs.open_files(9)) == []
    (said,) = needs.open_files(40)
    assert said == "40 jobs at once need about 224, 100 are allowed. Run `ulimit -n 224` first"


@given(st.text("aé", min_size=1, max_size=300))
def test_a_name_is_too_long_where_its_file_could_not_be_written(paper, name):
    longest = limits.longest_name(".")
    said = list(needs.names(paper, [job("score", {}, (f"results/{name}/scores.json",))]))
    assert bool(said) == (len(name.encode()) + needs.ADDED > longest)
    assert all(str(longest) in line for line in said)


def test_a_path_is_too_long(paper):
    deep = "/".join(["results", *["folder"] * 600, "scores.json"])
    (said,) = needs.names(paper, [job("score", {}, (deep,))])
    assert "4096 are allowed. Give `results` a shorter path" in said
