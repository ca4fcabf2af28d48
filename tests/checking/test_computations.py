"""The checks that compute, on a CPU: they pass here, and find what is wrong."""

from __future__ import annotations

import dataclasses
import itertools
import re

import pytest
import tiny_checkpoints
import torch

from entropy_valley import checking, machine, tables
from entropy_valley.checking import checks, computations, subject
from entropy_valley.checking.checks import CheckError, SkippedError
from entropy_valley.checking.subject import Size, Subject
from entropy_valley.config import load_files
from entropy_valley.decoding.engine import Engine
from entropy_valley.demo.settings import stock_config
from entropy_valley.errors import InputError

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


def test_the_company_of_a_canvas(smallest, monkeypatch):
    tiny_model = smallest["backbones"]["llada-tiny"]
    assert "6 of 6 canvases have the same bits" in computations.company(tiny_model, Subject(**smallest))
    changed(
        monkeypatch,
        lambda count, read: dataclasses.replace(read, tokens=[*read.tokens, count]),
    )
    with pytest.raises(SkippedError, match=r"^0 of 6 canvases .* results may change with the sentences"):
        computations.company(tiny_model, Subject(**smallest))
    with pytest.raises(CheckError, match=r"^0 of 6 canvases .* `decoding.batch_invariant: false`"):
        computations.company(tiny_model, Subject(**smallest | {"batch_invariant": True}))


def test_comet(folder, monkeypatch):
    from entropy_valley.scoring import comet

    text = computations.comet(folder / "one", Subject())
    assert re.match(r"\d+ texts/s, at most 0.0e\+00 from a CPU's, 6 of 6", text)
    right, off = comet.unpadded_scores, itertools.chain((0.0, 0.0, 0.01), itertools.repeat(0.0))  # the third: a CPU's
    monkeypatch.setattr(comet, "unpadded_scores", lambda *given: shifted(right(*given), next(off)))
    with pytest.raises(CheckError, match=r"at most 1\.0e-02"):
        computations.comet(folder / "two", Subject())
    off = itertools.chain((0.0, 1e-6, 1e-6), itertools.repeat(0.0))
    assert "0 of 6 the same alone" in computations.comet(folder / "three", Subject())
    off = itertools.chain((0.0, 1e-6, 1e-6), itertools.repeat(0.0))
    with pytest.raises(CheckError, match="0 of 6 the same alone"):
        computations.comet(folder / "four", Subject(thorough=True))


def shifted(scores, by):
    return [(one, score + by) for one, score in scores]


def test_memory_and_speed_of_the_configured_backbones(smallest, tmp_path, monkeypatch):
    given, padded = Subject(**smallest), Subject(**smallest | {"batch_invariant": True})
    llada, llama = (smallest["backbones"][name] for name in ("llada-tiny", "llama3-tiny"))
    assert "GFLOP/s in float32" in computations.speed(given)
    text = computations.fits(llama, given)
    assert "of weights and" in text and "a training: 8192 tokens a pass, a step at least" in text
    text = computations.decoding(llada, given)
    assert "1000 tokens in" in text and "a sentence (EV, T = 32) takes about" in text
    (tmp_path / "passed.txt").write_text(f"{checks.Line('pass llada-tiny', 'ok', text, 1.0)}\n")
    assert checks.pass_speeds(tmp_path)["llada-tiny"] >= 1e9
    assert "1000 tokens padded to 1024 in" in computations.decoding(llada, padded)
    with pytest.raises(SkippedError, match="autoregressive"):
        computations.decoding(llama, given)
    monkeypatch.setattr(computations, "device_memory", lambda device: 1000)
    with pytest.raises(CheckError, match="does not fit"):
        computations.fits(llada, given)


def test_the_papers_backbones_have_their_sizes_before_they_are_downloaded(monkeypatch):
    paper = subject.of(load_files(SMALLEST[:2], tables.problems))
    monkeypatch.setattr(computations, "device_memory", lambda device: 80 * 10**9)
    for one in paper["backbones"].values():
        assert "a training: 8192 tokens" in computations.fits(one, Subject(training=paper["training"]))
    assert (paper["processes"], paper["precision"], paper["device"]) == (8, "bfloat16", "cuda")
    billions = {name: Size.of(subject.model_config(one)).parameters / 1e9 for name, one in paper["backbones"].items()}
    expected = {"llada-8b": 8.02, "dream-7b": 7.62, "diffullama-7b": 6.74, "llama3-8b": 8.03, "dream-instruct": 7.62}
    assert billions == pytest.approx(expected, abs=0.01)
    with pytest.raises(SkippedError, match="not known"):
        computations.fits({"family": "llada", "folder": "nowhere", "arguments": None}, Subject())


def test_a_backbone_that_is_not_run_has_one_line_for_all_of_its_passes(monkeypatch):
    for name in ("training", "comet"):
        monkeypatch.setattr(computations, name, lambda *_: "")
    paper = subject.of(load_files(SMALLEST[:2], tables.problems))["backbones"]
    given = Subject(backbones={name: paper[name] for name in ("llada-8b", "llama3-8b")})
    monkeypatch.setattr(computations, "device_memory", lambda device: 80 * 10**9)
    lines = {line.name: (line.state, line.text) for line in checking.everything(given)}
    assert [*lines][-4:] == ["memory llada-8b", "decoding llada-8b", "memory llama3-8b", "decoding llama3-8b"]
    assert lines["decoding llada-8b"] == ("skipped", "too large to be run on a CPU for a check")
    assert lines["decoding llama3-8b"] == ("skipped", "an autoregressive backbone is decoded by transformers")


def test_a_checkpoint_that_lacks_a_tensor_is_found(folder):
    tiny_checkpoints.write(folder / "whole", "llada", eos=1.5)
    backbone = {"family": "llada", "folder": str(folder / "whole"), "arguments": None}
    assert "of weights" in computations.fits(backbone, Subject())
    (folder / "whole/model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="not a whole llada checkpoint"):
        computations.fits(backbone, Subject())


def test_work_is_what_the_benchmark_counts():
    size = Size(width=4096, ffn=12288, layers=32, vocabulary=126464, heads=32, kv_heads=32)
    body = 31 * 1000 * size.layer + 1000 * 2 * 4096**2 + 100 * (2 * 4096**2 + 3 * 4096 * 12288)
    assert size.pass_work(1000, 100) == 2 * (body + 100 * 4096 * 126464)
    assert size.step_work(10, 5, True) == 1.5 * size.step_work(10, 5, False)


def test_a_training_that_hangs_or_fails_is_a_line(tmp_path, monkeypatch):
    import signal

    from entropy_valley.training import sft

    monkeypatch.setattr(sft, "run", lambda job, threads: signal.raise_signal(signal.SIGALRM))
    with pytest.raises(CheckError, match="did not end within 420 s"):
        computations.training(Subject(), tmp_path)
    monkeypatch.setattr(sft, "run", lambda job, threads: exit(1))
    with pytest.raises(CheckError, match="a process of a training failed"):
        computations.training(Subject(), tmp_path)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    (line,) = checks.run([("training", lambda: computations.training(Subject("cuda", 4), tmp_path))])
    assert (line.state, line.text) == ("failed", "1 GPUs for 4 processes: lower `training.processes`")


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    (tmp_path / "cgroup").write_text("0::/job/step\n")
    for group, limit in (("", "max"), ("job", "2000000"), ("job/step", "max")):
        (tmp_path / group).mkdir(exist_ok=True)
        (tmp_path / group / "memory.max").write_text(f"{limit}\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "OF_PROCESS", tmp_path / "cgroup")
    assert machine.memory() == 2_000_000
    (tmp_path / "cgroup").write_text("4:memory:/old\n2:cpu:/job\n")
    (tmp_path / "memory" / "old").mkdir(parents=True)
    (tmp_path / "memory" / "old" / "memory.limit_in_bytes").write_text("3000000\n")
    assert machine.memory() == 3_000_000
