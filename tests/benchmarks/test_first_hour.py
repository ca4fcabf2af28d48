"""The first hour of a GPU, here on a CPU with a tiny model."""

from __future__ import annotations

import re
import subprocess
import sys

import first_hour
import pytest
import torch
from first_hour import FAILED, MEASURED, OK, Hour

from entropy_valley import files
from entropy_valley.model.checkpoint import config_arguments, special_ids
from entropy_valley.model.load import empty_model
from entropy_valley.model.prompt import load_tokenizer

KINDS = ("mask", "eos", "bos")


def options(work):
    return ["--shape", "tiny", "--device", "cpu", "--work", str(work)]


def table(work):
    """The cells of the table: step, expected, measured, verdict."""
    head, _, _, _, *rows = (work / "first_hour.md").read_text().splitlines()
    assert head.startswith("tiny, float32, ")
    return [row.strip("| ").split(" | ") for row in rows]


@pytest.mark.cluster
@pytest.mark.slow
def test_the_whole_hour_on_a_cpu(tmp_path):
    command = [sys.executable, first_hour.__file__, *options(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    rows = table(tmp_path)
    assert {row[-1] for row in rows} == {OK, MEASURED} and done.returncode == 0, done.stderr
    verdicts = {row[0]: row[-1] for row in rows}
    promised = ["weights", "check", "float32: texts of the reference", "training, killed and resumed", "COMET, company"]
    assert [verdicts[name] for name in promised] == [OK] * 5
    company = {name: verdict for name, verdict in verdicts.items() if name.startswith("company, ")}
    assert company == {name: MEASURED if "not padded" in name else OK for name in company} and len(company) == 6
    assert done.stdout.endswith((tmp_path / "first_hour.md").read_text())
    for line in ("company", "memory", "pass"):  # the check is of this shape
        assert re.search(rf"^ok +{line} tiny ", done.stdout, re.MULTILINE)


def test_probes_around_the_reference_say_when_a_canvas_is_too_long(tmp_path):
    """By the model that comes with the package, on the corpus that it knows."""
    rows = [
        {"id": str(n), "source": "Maria must clean my bag.", "target": "Maria muss meine Tasche reinigen."}
        for n in (1, 2)
    ]
    files.write_jsonl(tmp_path / "test.jsonl", rows)
    hour = Hour("cpu", "tiny", tmp_path, tmp_path / "test.jsonl", "en-de")
    found = {row.step: row.measured for row in first_hour.probes(hour)}
    entropies = [float(re.search(r"entropy ([\d.]+) nats", text)[1]) for text in found.values()]
    repeated = [float(re.search(r"repeats ([\d.]+), 2 pairs", text)[1]) for text in found.values()]
    assert len(found) == 9 and entropies.index(min(entropies)) == 4  # at the reference
    assert repeated[4] == 0 and max(repeated[5:]) > 0


def test_a_step_that_fails_is_in_the_table_and_the_others_run(tmp_path, monkeypatch):
    def without_tokenizer(hour):
        yield from first_hour.write_weights(hour)
        (hour.folder / "tokenizer.json").write_text("{}")

    monkeypatch.setitem(first_hour.STEPS, "weights", without_tokenizer)
    monkeypatch.setattr(sys, "argv", ["first_hour", *options(tmp_path), "--only", "company", "comet"])
    with pytest.raises(SystemExit) as ended:
        first_hour.main()
    rows = table(tmp_path)
    assert ended.value.code == 1
    assert [(row[0], row[-1]) for row in rows if row[-1] != MEASURED] == [
        ("weights", OK),
        ("company", FAILED),
        ("COMET, company", OK),
    ]
    assert "is not a tokenizer that can be read" in rows[1][2]


def test_a_step_ends_with_the_minutes(tmp_path):
    (row,) = first_hour.step("weights", Hour("cpu", "tiny", tmp_path), until=0.0)
    assert (row.measured, row.verdict) == ("stopped: the minutes are over", FAILED)


@pytest.mark.parametrize("shape", sorted(first_hour.FAMILIES))
def test_config_and_tokenizer_are_as_released(shape, tmp_path):
    hour = Hour("cpu", shape, tmp_path)
    first_hour._write_config(hour, empty_model(hour.family, hour.arguments, torch.bfloat16))
    release = hour.family.releases[0]
    tokenizer = load_tokenizer(hour.folder, hour.family)
    assert len(tokenizer) == hour.arguments["vocab_size"]
    assert tokenizer.decode(tokenizer("Anna sees 12 cats.")["input_ids"]) == "Anna sees 12 cats."
    ids = special_ids(hour.folder, hour.family, tokenizer)
    if shape != "tiny":
        config_arguments(hour.folder, hour.family, release.repository)  # raises where a field differs
        assert [ids[kind] for kind in KINDS] == [release.ids[kind] for kind in KINDS]


def test_weights_in_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr(first_hour, "SHARD", 300_000)
    hour = Hour("cpu", "tiny", tmp_path)
    (row,) = first_hour.write_weights(hour)
    names = set(files.read_json(hour.folder / "model.safetensors.index.json")["weight_map"].values())
    assert row.verdict == OK and {path.name for path in hour.folder.glob("*.safetensors")} == names
    assert len(names) > 2 and hour.backbone().model.dtype == torch.float32
