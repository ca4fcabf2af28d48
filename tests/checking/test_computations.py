"""The checks that compute, on a CPU: they pass here, and find what is wrong."""

import dataclasses
import multiprocessing
import re
import time

import pytest
import torch

from entropy_valley import machine
from entropy_valley.decoding.engine import Engine
from entropy_valley.experiment import checking, tables
from entropy_valley.experiment.checking import checks, computations, subject
from entropy_valley.experiment.checking.checks import CheckError, SkippedError
from entropy_valley.experiment.checking.size import Size
from entropy_valley.experiment.checking.subject import Subject
from entropy_valley.experiment.config import load_files
from entropy_valley.experiment.demo.settings import stock_config
from entropy_valley.training import sft

SMALLEST = ["config/studies.yaml", "config.yaml", "config/demo.yaml", "config/smallest.yaml"]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("check")


@pytest.fixture(scope="module")
def smallest():
    return subject.of(load_files(SMALLEST, tables.problems))


def changed(monkeypatch, change):
    """The engine gives each result as ``change(engine, queue, result)``."""
    run = Engine.run

    def wrong(engine, queue, *order):
        count = len(queue.heap)
        return ((name, change(count, result)) for name, result in run(engine, queue, *order))

    monkeypatch.setattr(Engine, "run", wrong)


@pytest.fixture(params=["llada", "dream"])  # not shifted, with rotation in float32; shifted, with biases
def tiny(request):
    shape = dict(vocabulary=320, width=32, ffn=64, layers=2, heads=4, kv_heads=2)
    described = {"family": request.param, "folder": "none", "arguments": stock_config(**shape)}
    return described, Subject()


def test_the_engine_in_float32(tiny, monkeypatch):
    assert computations.same_texts(*tiny).startswith("48 of 48")
    changed(
        monkeypatch, lambda _, done: dataclasses.replace(done, tokens=[*done.tokens, -1], text=len(done.tokens) + 1)
    )
    with pytest.raises(CheckError, match=r"^0 of 48 .*something else in float32"):
        computations.same_texts(*tiny)


def test_the_engine_in_bfloat16(tiny, monkeypatch):
    assert "nats from float32" in computations.same_entropies(*tiny)
    changed(
        monkeypatch, lambda _, read: dataclasses.replace(read, entropies=tuple(one * 1.1 for one in read.entropies))
    )
    with pytest.raises(CheckError, match="something else in bfloat16"):
        computations.same_entropies(*tiny)


def test_a_canvas_alone_and_in_batches(smallest, monkeypatch):
    tiny_model = smallest["backbones"]["llada-tiny"]
    assert computations.same_in_batches(tiny_model, Subject(**smallest)).startswith(
        "6 of 6 canvases have the same bits"
    )
    changed(monkeypatch, lambda count, read: dataclasses.replace(read, tokens=[*read.tokens, count]))
    with pytest.raises(SkippedError, match=r"^0 of 6 canvases .* results may change with the sentences"):
        computations.same_in_batches(tiny_model, Subject(**smallest))
    with pytest.raises(CheckError, match=r"^0 of 6 canvases .* `decoding.batch_invariant: false`"):
        computations.same_in_batches(tiny_model, Subject(**smallest | {"batch_invariant": True}))


def test_memory_and_speed_of_the_configured_backbones(smallest, monkeypatch):
    given, padded = Subject(**smallest), Subject(**smallest | {"batch_invariant": True})
    llada = smallest["backbones"]["llada-tiny"]
    assert re.match(
        r"1000 tokens in .* GFLOP/s: a sentence \(EV, T = 32\) takes about", computations.speed(llada, given)
    )
    assert "1000 tokens padded to 1024 in" in computations.speed(llada, padded)
    monkeypatch.setattr(computations, "device_memory", lambda device: 1000)
    with pytest.raises(CheckError, match=r"does not fit\. Use a larger GPU"):
        computations.fits(llada, given)


def test_the_papers_backbones_have_their_sizes_before_they_are_downloaded(monkeypatch):
    paper = subject.of(load_files(SMALLEST[:2], tables.problems))
    monkeypatch.setattr(computations, "device_memory", lambda device: 80 * 10**9)
    for one in paper["backbones"].values():
        assert "a training: 8192 tokens" in computations.fits(one, Subject(training=paper["training"]))
        plan = computations.pass_plan(one, Subject("cuda", training=paper["training"]), 80 * 10**9)
        assert plan.micro_tokens >= 4096 and plan.expected < 80 * 10**9
    assert (paper["processes"], paper["precision"], paper["device"]) == (8, "bfloat16", "cuda")
    billions = {name: Size.of(subject.model_config(one)).parameters / 1e9 for name, one in paper["backbones"].items()}
    expected = {"llada-8b": 8.02, "dream-7b": 7.62, "diffullama-7b": 6.74, "llama3-8b": 8.03, "dream-instruct": 7.62}
    assert billions == pytest.approx(expected, abs=0.01)
    with pytest.raises(SkippedError, match="not known"):
        computations.fits({"family": "llada", "folder": "nowhere", "arguments": None}, Subject())


def test_a_backbone_that_is_not_run_has_one_line_that_says_why(monkeypatch):
    monkeypatch.setattr(computations, "training", lambda *_: "")
    monkeypatch.setattr(computations, "device_memory", lambda device: 80 * 10**9)
    paper = subject.of(load_files(SMALLEST[:2], tables.problems))["backbones"]
    given = Subject(backbones={name: paper[name] for name in ("llada-8b", "llama3-8b")})
    lines = {line.name: (line.state, line.text) for line in checking.everything(given, thorough=True)}
    assert [*lines][-4:] == ["memory llada-8b", "decoding llada-8b", "memory llama3-8b", "decoding llama3-8b"]
    assert lines["decoding llada-8b"] == ("skipped", "too large to be run on a CPU for a check")
    assert lines["decoding llama3-8b"] == ("skipped", "transformers decodes it")


def test_a_training_that_hangs_or_fails_is_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(computations, "SPAWN", multiprocessing.get_context("fork"))
    job = computations.finetuning(tmp_path, "float32", 2, "cuda")
    monkeypatch.setattr(sft, "run", lambda job, threads: time.sleep(600))
    with pytest.raises(CheckError, match=r"did not end within 0.001 minutes\. NCCL_DEBUG=INFO says more"):
        computations.train(job, 0.001)
    monkeypatch.setattr(sft, "run", lambda job, threads: exit(1))
    with pytest.raises(CheckError, match="a process of a training failed"):
        computations.train(job, 1)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    (line,) = checks.run([("training", lambda: computations.training(Subject("cuda", 4), tmp_path))])
    assert (line.state, line.text) == ("failed", "1 GPUs for 4 processes: lower `training.processes`")


@pytest.mark.cluster
@pytest.mark.slow
def test_all_of_the_thorough_check_passes(smallest):
    """Of one backbone; `test_cluster.py` has the plain check of all."""
    one = {"backbones": {"llada-tiny": smallest["backbones"]["llada-tiny"]}}
    lines = {line.name: line for line in checking.everything(Subject(**smallest | one), thorough=True)}
    assert {line.state for line in lines.values()} == {"ok", "skipped"}, lines
    kinds = ("memory", "decoding", "bfloat16", "batches", "speed")
    assert {f"{kind} llada-tiny" for kind in kinds} <= {name for name, line in lines.items() if line.state == "ok"}
    assert lines["resuming"].text.endswith("resumed: the same adapter")


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    (tmp_path / "cgroup").write_text("0::/job/step\n")
    for group, limit in (("", "max"), ("job", "2000000"), ("job/step", "max")):
        (tmp_path / group).mkdir(exist_ok=True)
        (tmp_path / group / "memory.max").write_text(f"{limit}\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "OF_PROCESS", tmp_path / "cgroup")
    assert machine.memory() == 2_000_000
