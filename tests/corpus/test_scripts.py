from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from entropy_valley import files

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"
SPEC = {"direction": "en-de", "revision": 1, "seed": 1, "source": {"name": "embedded"}}


def run(script: str, spec: dict, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPTS / script, json.dumps(spec), *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def test_corpus_script(tmp_path):
    paths = [tmp_path / name for name in ("train.jsonl", "dev.jsonl", "corpus.json")]
    done = run(
        "corpus.py",
        {**SPEC, "train": 30, "dev": 5, "filters": {}},
        "--train",
        paths[0],
        "--dev",
        paths[1],
        "--report",
        paths[2],
    )
    assert done.returncode == 0, done.stderr
    assert len(files.read_jsonl(paths[0], ("id", "source", "target"))) == 30
    assert files.read_json(paths[2])["counts"]["dev"] == 5


def test_testset_script_ends_bad_input_with_one_line(tmp_path):
    out = tmp_path / "test.jsonl"
    assert run("testset.py", {**SPEC, "limit": 7}, "--out", out).returncode == 0
    before = out.read_bytes()
    failed = run("testset.py", {**SPEC, "limit": None}, "--out", out)
    assert failed.returncode == 2
    assert failed.stderr.startswith("error: ") and failed.stderr.count("\n") == 1
    assert out.read_bytes() == before


def test_overlap_script_warns_of_test_sentences_in_training(tmp_path):
    rows = [{"id": str(n), "source": f"{n}", "target": f"zu {n}"} for n in range(4)]
    test, train, out = (tmp_path / name for name in ("test.jsonl", "train.jsonl", "out.json"))
    files.write_jsonl(test, rows)
    files.write_jsonl(train, rows[1:])
    done = run("overlap.py", {"direction": "en-de"}, "--testset", test, "--train", train, "--out", out)
    assert done.stderr.startswith(f"warning: {test}: 3 of 4 sources occur in the training pairs")
    files.write_jsonl(train, [{"id": "5", "source": "5", "target": "zu 5"}])
    assert run("overlap.py", {"direction": "en-de"}, "--testset", test, "--train", train, "--out", out).stderr == ""
