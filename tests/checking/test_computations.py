"""The checks that compute, on a CPU: they pass here, and find what is wrong."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from entropy_valley.checking import agreement, company, metric, sizes, speed, subject
from entropy_valley.checking.line import CheckError, SkippedError
from entropy_valley.checking.sizes import Size
from entropy_valley.checking.subject import Subject
from entropy_valley.checking.training_pass import TrainingPass
from entropy_valley.decoding.engine import Engine
from entropy_valley.experiment import load_files
from entropy_valley.model import attention as packed
from entropy_valley.reporting import reports
from entropy_valley.training.memory import Plan

SMALLEST = ["config/studies.yaml", "config.yaml", "config/demo.yaml", "config/smallest.yaml"]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("check")


@pytest.fixture(scope="module")
def smallest():
    return subject.of(load_files(SMALLEST, reports.problems))


def test_attention(monkeypatch):
    assert "each sequence: at most 0.0" in agreement.attention("cpu")
    right = packed._by_run
    monkeypatch.setattr(packed, "_by_run", lambda *given, **more: right(*given[:4], 2 * given[4], *given[5:], **more))
    with pytest.raises(CheckError, match="from the definition"):
        agreement.attention("cpu")


def test_the_engine_in_float32(folder, monkeypatch):
    assert agreement.same_texts(folder, "cpu").startswith("24 of 24")
    run = Engine.run
    monkeypatch.setattr(Engine, "run", lambda *given: ((name, with_end(done)) for name, done in run(*given)))
    with pytest.raises(CheckError, match=r"^0 of 24 .*something else in float32"):
        agreement.same_texts(folder, "cpu")


def with_end(decoded):
    """The same translation and a token that it has not."""
    return dataclasses.replace(decoded, tokens=[*decoded.tokens, -1], text=len(decoded.tokens) + 1)


def test_the_engine_in_bfloat16(folder, monkeypatch):
    assert "nats from float32" in agreement.same_entropies(folder, "cpu")
    run = Engine.run

    def farther(*given):
        for name, read in run(*given):
            yield name, dataclasses.replace(read, entropies=tuple(value * 1.1 for value in read.entropies))

    monkeypatch.setattr(Engine, "run", farther)
    with pytest.raises(CheckError, match="something else in bfloat16"):
        agreement.same_entropies(folder, "cpu")


def test_the_company_of_a_canvas(smallest, monkeypatch):
    lines = dict(company.checks(Subject(**smallest)))
    assert list(lines) == ["company llada-tiny", "company dream-instruct"]
    assert "6 of 6 canvases have the same bits" in lines["company llada-tiny"]()
    run = Engine.run

    def by_company(engine, queue):
        off = len(queue) / 1e9
        for name, read in run(engine, queue):
            yield name, dataclasses.replace(read, entropies=tuple(value + off for value in read.entropies))

    monkeypatch.setattr(Engine, "run", by_company)
    with pytest.raises(SkippedError, match=r"^0 of 6 canvases .* results may change with the sentences"):
        lines["company llada-tiny"]()
    padded = dict(company.checks(Subject(**smallest | {"batch_invariant": True})))
    with pytest.raises(CheckError, match=r"^0 of 6 canvases .* `decoding.batch_invariant: false`"):
        padded["company llada-tiny"]()


def test_comet(folder, monkeypatch):
    from entropy_valley.scoring import comet

    assert metric.comet(folder / "one", "cpu").startswith("27 scores, at most 0.0e+00")
    right, off = comet.unpadded_scores, iter((0.0, 0.01))
    monkeypatch.setattr(comet, "unpadded_scores", lambda *given: shifted(right(*given), next(off)))
    with pytest.raises(CheckError, match=r"at most 1\.0e-02"):
        metric.comet(folder / "two", "cpu")


def shifted(scores, by):
    return [(one, score + by) for one, score in scores]


def test_memory_and_costs_of_the_configured_backbones(smallest, monkeypatch, tmp_path):
    assert list(smallest["backbones"]) == ["llada-tiny", "llama3-tiny", "dream-instruct"]
    measured = speed.Speed(Subject(**smallest))
    lines = dict(measured.checks())
    assert "GFLOP/s in float32" in lines["speed"]()
    assert "of weights and" in lines["memory llada-tiny"]()
    assert "1000 tokens in" in (line := lines["pass llada-tiny"]()) and "a sentence (EV, T = 32) takes about" in line
    padded = dict(speed.Speed(Subject(**smallest | {"batch_invariant": True})).checks())
    assert "1000 tokens padded to 1024 in" in padded["pass llada-tiny"]()
    for name in ("llada-tiny", "llama3-tiny"):
        assert "8192 tokens a pass; a step (16 pairs, 1 processes) takes about" in lines[f"training {name}"]()
    assert "products alone: a training step (16 pairs, 1 processes) " in lines["cost llama3-tiny"]()
    with pytest.raises(SkippedError, match="autoregressive"):
        lines["pass llama3-tiny"]()
    monkeypatch.setattr(speed, "memory", lambda device: 1000)
    with pytest.raises(CheckError, match="does not fit"):
        lines["memory llada-tiny"]()


def test_the_pass_of_a_training_must_fit_beside_its_optimiser(smallest, monkeypatch):
    """As it would be measured on a GPU."""
    measured = speed.Speed(Subject(**smallest))
    chosen = Plan(2048, activation_checkpointing=False, expected=int(9e9))
    monkeypatch.setattr(measured, "_plan", lambda backbone: chosen)
    monkeypatch.setattr(speed, "memory", lambda device: 10e9)
    line = dict(measured.checks())["training llada-tiny"]
    monkeypatch.setattr(TrainingPass, "run", lambda self, tokens: (0.1, int(8e9)))
    assert line().startswith("2048 tokens a pass, 8.4 GB in all, 9.0 GB expected; a step (16 pairs")
    monkeypatch.setattr(TrainingPass, "run", lambda self, tokens: (0.1, int(10e9)))
    with pytest.raises(CheckError, match=r"10.4 GB in all.*more than the GPU has"):
        line()


def test_the_papers_backbones_have_their_sizes_before_they_are_downloaded():
    paper = subject.of(load_files(SMALLEST[:2], reports.problems))
    assert (paper["processes"], paper["precision"], paper["device"]) == (8, "bfloat16", "cuda")
    billions = {name: Size.of(subject.arguments(one)).parameters / 1e9 for name, one in paper["backbones"].items()}
    expected = {"llada-8b": 8.02, "dream-7b": 7.62, "diffullama-7b": 6.74, "llama3-8b": 8.03, "dream-instruct": 7.62}
    assert billions == pytest.approx(expected, abs=0.01)
    unknown = {"family": "llada", "folder": "nowhere", "arguments": None}
    with pytest.raises(SkippedError, match="not known"):
        speed.Speed(Subject()).fits(unknown)
    with pytest.raises(SkippedError, match="not known"):
        speed.Speed(Subject(training=paper["training"])).training(unknown)


def test_a_checkpoint_that_lacks_a_tensor_is_found(folder):
    from entropy_valley.checking import tiny
    from entropy_valley.errors import InputError

    tiny.write(folder / "whole", "llada", eos=1.5)
    backbone = {"family": "llada", "folder": str(folder / "whole"), "arguments": None}
    assert "the checkpoint is whole" in speed.Speed(Subject()).fits(backbone)
    (folder / "whole/model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="not a whole llada checkpoint"):
        speed.Speed(Subject()).fits(backbone)


def test_work_is_what_the_benchmark_counts():
    size = Size(width=4096, ffn=12288, layers=32, vocabulary=126464, heads=32, kv_heads=32)
    body = 31 * 1000 * size.layer + 1000 * 2 * 4096**2 + 100 * (2 * 4096**2 + 3 * 4096 * 12288)
    assert size.pass_work(1000, 100) == 2 * (body + 100 * 4096 * 126464)
    assert size.step_work(10, 5, True) == 1.5 * size.step_work(10, 5, False)
    assert sizes.BYTES == {"float32": 4, "bfloat16": 2}
