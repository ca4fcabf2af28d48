"""The benchmarks: rivals compute the same; floors and bytes are what they say."""

import os
import re
import sys
from pathlib import Path

import decoding
import growth
import pandas as pd
import pytest
import torch
import traffic
import training
import workload
from baselines import Padded
from tiny_checkpoints import one_thread  # noqa: F401 - fixture
from workload import Shape

from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Ledger

TINY = Shape(vocabulary=60, width=32, layers=2, ffn=48, sentences=7, heads=4)


@pytest.fixture
def tiny(monkeypatch):
    """A model small and wild enough for every step to matter, instead of the smallest shape."""
    monkeypatch.setitem(workload.SHAPES, "small", TINY)
    monkeypatch.setattr(growth, "SHAPE", TINY)
    made = workload.make(TINY, "cpu", scale=0.3)
    for parameter in made.backbone.model.parameters():
        parameter.mul_(6 if parameter.dim() == 2 else 1)
    return made


@pytest.mark.parametrize(("batch", "skip"), [(1, False), (3, True)])
def test_the_rivals_are_algorithm_1(tiny, batch, skip):
    ledger = Ledger()
    filled = Padded(tiny.backbone, ledger, batch, skip).decode(tiny.sentences, tiny.prompts, (0.5, 0.8, 1.1), steps=9)
    ours = decoding.run_engine(tiny, (0.5, 0.8, 1.1), 9)
    longest = max(map(len, filled))
    for place, (tokens, prompt) in enumerate(zip(filled, tiny.prompts, strict=True)):
        assert tokens == reference.decode(tiny.backbone, prompt, len(tokens), 9)[0]
        text = tokens.index(0) if 0 in tokens else len(tokens)
        assert ours.filled[place][:text] == tokens[:text]
    assert ledger["rows"] == ledger["tokens"] > ours.ledger["tokens"] > ours.ledger["rows"]
    assert longest > 9 or not skip or ledger["passes"] < 7 * 12


def test_what_is_needed_is_counted_pass_by_pass():
    """One pass of 5 rows, 2 of them masked, by hand: products of width 4, FFN 6, vocabulary 10, two layers."""
    shape = Shape(vocabulary=10, width=4, layers=2, ffn=6, sentences=1)
    whole = 5 * (4 * 16 + 3 * 24) + 2 * 4 * 5 * 5
    last = 5 * 2 * 16 + 2 * (2 * 16 + 3 * 24) + 2 * 4 * 5 * 2
    assert workload.flops(shape, [(5, 2)]) == 2 * (whole + last + 2 * 4 * 10)
    assert workload.flops(shape, [(5, 2), (5, 2)]) == 2 * workload.flops(shape, [(5, 2)])


@pytest.mark.parametrize("script", [decoding, growth])
def test_a_benchmark_writes_its_table_and_its_figure(script, tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(growth, "settings", lambda: {("steps T", 2): {"steps": 2}, ("sentences", 3): {"sentences": 3}})
    only = ["--shapes", "small", "--all", "--no-memory"] if script is decoding else []
    arguments = [script.__file__, *only, "--rounds", "1", "--threads", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    script.main()
    name = Path(script.__file__).stem
    table = pd.read_csv(tmp_path / f"{name}.csv")
    assert len(table) == (2 * len(decoding.METHODS) if script is decoding else 2)
    assert (table.seconds_per_sentence > 0).all()
    assert {path.suffix for path in tmp_path.glob(f"{name}.*")} == {".csv", ".pdf", ".png", ".svg"}
    assert "torch" in capsys.readouterr().out


# --- A training, and the bytes of passes.


def test_traffic_counts_what_operations_read_and_write():
    with traffic.Traffic() as seen:
        one = torch.zeros(4, 8) + 1  # written; read and written
        (one.view(8, 4) @ one).sum()
    assert seen.bytes == {"elementwise": 3 * 128 + 256 + 4, "products": 2 * 128 + 256}


@pytest.mark.skipif("ENTROPY_VALLEY_NIGHTLY" not in os.environ, reason="ENTROPY_VALLEY_NIGHTLY is not set")
def test_passes_of_compiled_layers_move_what_is_said():
    """A minute or more: layers of the full width are compiled."""
    decoding, training = [row[1] for row in traffic.passes("llada") if "compiled" in row[0]]
    assert 20e9 < decoding < 30e9 and 400e9 < training < 480e9


def test_all_variants_agree_and_are_timed(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(workload.SHAPES, "small", Shape(80, 16, 2, 24, 10, heads=2))
    monkeypatch.setattr(training, "peak_of", lambda variant: 2**20)
    options = ["--shape", "small", "--threads", "1", "--rounds", "1", "--batch", "10", "--micro-tokens", "128"]
    monkeypatch.setattr(sys, "argv", ["training.py", *options, "--out", str(tmp_path)])
    training.main()
    differences = re.findall(r"differences at most (\S+) and (\S+)", capsys.readouterr().out)
    assert len(differences) == 3
    assert all(float(loss) < 1e-5 and float(gradients) < 1e-5 for loss, gradients in differences)
    rows = (tmp_path / "training.csv").read_text().splitlines()
    assert [row.split(",")[0].strip('"') for row in rows] == ["variant", "padded", "packed", "padded", "packed"]
