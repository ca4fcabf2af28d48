from __future__ import annotations

import json
import subprocess
import sys

import pytest

from entropy_valley import files
from entropy_valley.scoring import comet

SPEC = {
    "direction": "en-zh",
    "revision": 1,
    "target_language": "zh",
    "label": "toy COMET",
    "comet": {"checkpoint": None, "batch_size": 1},
}


@pytest.fixture
def job(tmp_path, comet_folder, segments):
    """The arguments of a score job on the segments; outputs in ``tmp_path / name``."""
    testset, hypotheses = tmp_path / "test.jsonl", tmp_path / "hypotheses.jsonl"
    rows = list(enumerate(segments))
    files.write_jsonl(testset, ({"id": str(i), "source": s, "target": t} for i, (s, _, t) in rows))
    files.write_jsonl(hypotheses, ({"id": str(i), "hypothesis": h} for i, (_, h, _) in rows))

    def arguments(name):
        inputs = ("--testset", testset, "--hypotheses", hypotheses, "--comet", comet_folder)
        outputs = ("--segments", tmp_path / name / "scores.jsonl", "--system", tmp_path / name / "scores.json")
        return SPEC, *inputs, *outputs, "--store", tmp_path / "store"

    return arguments


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files(job, run_script, tmp_path, comet_folder, segments):
    run_script("score", *job("first"))
    rows = files.read_jsonl(tmp_path / "first" / "scores.jsonl", ("id", "comet22", "chrf"))
    system = files.read_json(tmp_path / "first" / "scores.json")
    assert [row["id"] for row in rows] == [str(number) for number in range(len(segments))]
    assert system["comet22"] == sum(row["comet22"] for row in rows) / len(rows)
    assert system["sentences"] == len(segments)
    assert 0 < system["bleu"] < 100 and 0 < system["chrf"] < 100
    assert "|model:embedded|" in system["signatures"]["comet22"] and "tok:zh" in system["signatures"]["bleu"]
    assert system["digests"]["testset"] == files.file_digest(tmp_path / "test.jsonl")
    assert system["digests"]["comet"] == files.file_digest(comet_folder / comet.CHECKPOINT)


def test_a_killed_job_ends_in_the_same_bytes(job, run_script, tmp_path):
    run_script("score", *job("whole"), "--no-store")
    assert not (tmp_path / "store").exists()
    run_script("score", *job("first"))
    (shard,) = (tmp_path / "store").glob("*.jsonl")
    shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])  # a kill in the middle of a line
    run_script("score", *job("resumed"))
    assert written(tmp_path / "whole") == written(tmp_path / "first") == written(tmp_path / "resumed")


def test_with_a_full_store_torch_is_not_imported(job, run_script, scripts):
    run_script("score", *job("first"))
    spec, *arguments = job("second")
    argv = [str(scripts / "score.py"), json.dumps(spec), *map(str, arguments)]
    program = (
        "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__');"
        " assert not {'torch', 'comet', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, *argv], check=True)
