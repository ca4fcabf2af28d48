from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.scoring import comet, comet_checkpoint, metrics

SPEC = {
    "direction": "en-zh",
    "revision": 1,
    "target_language": "zh",
    "comet": {"checkpoint": None, "batch_size": 1},
}


GUIDE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
OWN = re.search(r"```python\n(# my_metrics\.py.*?)```", GUIDE, re.DOTALL)[1]


@pytest.fixture
def job(tmp_path, comet_folder, segments):
    """The arguments of a score job on the segments; outputs in ``tmp_path / name``."""
    testset, hypotheses = tmp_path / "test.jsonl", tmp_path / "hypotheses.jsonl"
    rows = list(enumerate(segments))
    files.write_jsonl(testset, ({"id": str(i), "source": s, "target": t} for i, (s, _, t) in rows))
    files.write_jsonl(hypotheses, ({"id": str(i), "hypothesis": h} for i, (_, h, _) in rows))

    def arguments(name, **more):
        inputs = ("--testset", testset, "--hypotheses", hypotheses, "--comet", comet_folder)
        outputs = ("--segments", tmp_path / name / "scores.jsonl", "--system", tmp_path / name / "scores.json")
        return {**SPEC, **more}, *inputs, *outputs, "--store", tmp_path / "store"

    return arguments


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files(job, run_script, tmp_path, comet_folder, segments):
    run_script("score", *job("first"))
    rows = files.read_jsonl(tmp_path / "first" / "scores.jsonl", ("id", "toy_comet", "chrf"))
    system = files.read_json(tmp_path / "first" / "scores.json")
    assert [row["id"] for row in rows] == [str(number) for number in range(len(segments))]
    assert system["toy_comet"] == sum(row["toy_comet"] for row in rows) / len(rows)
    assert system["sentences"] == len(segments)
    assert 0 < system["bleu"] < 100 and 0 < system["chrf"] < 100
    assert "|model:embedded|" in system["signatures"]["toy_comet"] and "tok:zh" in system["signatures"]["bleu"]
    assert system["digests"]["testset"] == files.file_digest(tmp_path / "test.jsonl")
    assert system["digests"]["comet"] == files.file_digest(comet_folder / comet_checkpoint.CHECKPOINT)


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


def test_a_further_metric_loads_only_its_own_model(job, run_script, tmp_path, other_folders, monkeypatch):
    run_script("score", *job("first"))
    kiwi = {"metric": "comet", "checkpoint": "Unbabel/wmt22-cometkiwi-da", "reference_free": True}
    loaded, load = [], comet.load
    monkeypatch.setattr(comet, "load", lambda path, device: loaded.append(path) or load(path, device))
    folder = other_folders["kiwi"]
    run_script("score", *job("more", metrics={"kiwi": kiwi}), "--checkpoint", f"kiwi={folder}")
    assert loaded == [folder / comet_checkpoint.CHECKPOINT]
    first, more = (files.read_json(tmp_path / name / "scores.json") for name in ("first", "more"))
    assert {key: more[key] for key in ("toy_comet", "bleu", "chrf")} == {
        key: first[key] for key in ("toy_comet", "bleu", "chrf")
    }
    assert "|model:Unbabel/wmt22-cometkiwi-da|" in more["signatures"]["kiwi"]
    assert more["digests"]["kiwi"] == files.file_digest(folder / comet_checkpoint.CHECKPOINT)
    rows = files.read_jsonl(tmp_path / "more" / "scores.jsonl", ("id", "toy_comet", "chrf", "kiwi"))
    assert more["kiwi"] == sum(row["kiwi"] for row in rows) / len(rows)


def test_a_metric_of_the_users_own(job, run_script, tmp_path, segments, monkeypatch):
    (tmp_path / "my_metrics.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    own = {"metric": "my_metrics:Numbers", "pattern": "Please"}
    run_script("score", *job("own", metrics={"numbers": own}))
    system = files.read_json(tmp_path / "own" / "scores.json")
    rows = files.read_jsonl(tmp_path / "own" / "scores.jsonl", ("numbers",))
    assert system["numbers"] == sum(row["numbers"] for row in rows) / len(segments)
    assert [row["numbers"] for row in rows] == [float("Please" not in source) for source, _, _ in segments]
    assert system["signatures"]["numbers"] == "numbers|version:1|pattern:Please"


def test_a_metric_of_systems_has_no_column_of_sentences(job, run_script, tmp_path):
    run_script("score", *job("more", metrics={"bleu_char": {"metric": "bleu", "tokenize": "char"}}))
    assert "tok:char|" in files.read_json(tmp_path / "more" / "scores.json")["signatures"]["bleu_char"]
    assert list(files.read_jsonl(tmp_path / "more" / "scores.jsonl", ())[0]) == ["id", "toy_comet", "chrf"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("[1.0]", "metric 'mine': gave 1 scores for 2 sentences"),
        ("[1.0, float('nan')]", "metric 'mine': gave nan for sentence 2"),
        (
            "1 / 0",
            "Mine.segment_scores: metric 'mine', 2 sentences: ZeroDivisionError: division by zero (mine.py, line 4)",
        ),
        ("['high', 'low']", "Mine.segment_scores: metric 'mine', 2 sentences: ValueError: could not convert string"),
        ("None", "Mine.segment_scores: metric 'mine', 2 sentences: TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_a_metric_that_fails_is_named(tmp_path, monkeypatch, body, says):
    scores = f"    def segment_scores(self, *_):\n        return {body}\n"
    (tmp_path / "mine.py").write_text(f"class Mine:\n    decimals, signature = 1, 'mine'\n{scores}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    with pytest.raises(InputError, match=re.escape(says)):
        metrics.score("mine", metrics.make_metric("mine:Mine", {}), None, ["a", "b"], ["c", "d"], ["e", "f"])


class TestOneJobForManySystems:
    """``comet_scores.py`` fills the store, from which ``score.py --from-store`` takes its scores."""

    KIWI: ClassVar = {"metric": "comet", "checkpoint": "Unbabel/wmt22-cometkiwi-da", "reference_free": True}

    @pytest.fixture
    def fill(self, job, run_script, tmp_path, segments, other_folders):
        """Score two systems; the second one has the hypotheses of the first in another order."""
        rows = [{"id": str(i), "hypothesis": h} for i, (_, h, _) in enumerate(segments)]
        others = [row | {"hypothesis": other["hypothesis"]} for row, other in zip(rows, rows[::-1], strict=True)]
        files.write_jsonl(tmp_path / "others.jsonl", others)

        def run(**more):
            spec, *given = job("unused", **more)
            shared = [*given[:2], *given[4:6], "--store", tmp_path / "store"]
            paths = [str(tmp_path / name) for name in ("hypotheses.jsonl", "others.jsonl")]
            systems = ("--hypotheses", json.dumps(paths))
            further = ("--checkpoint", f"kiwi={other_folders['kiwi']}") if "metrics" in more else ()
            run_script("comet_scores", spec, *shared, *systems, "--out", tmp_path / "stamp.json", *further)

        return run

    @pytest.mark.parametrize("batch_size", [1, 5])
    def test_the_scores_are_those_of_each_system_alone(
        self, job, fill, run_script, tmp_path, other_folders, batch_size, monkeypatch
    ):
        more = {"comet": {"checkpoint": None, "batch_size": batch_size}, "metrics": {"kiwi": self.KIWI}}
        kiwi = ("--checkpoint", f"kiwi={other_folders['kiwi']}")
        loaded, load = [], comet.load
        monkeypatch.setattr(comet, "load", lambda path, device: loaded.append(path) or load(path, device))
        fill(**more)
        assert len(loaded) == len(set(loaded)) == 2
        assert files.read_json(tmp_path / "stamp.json")["systems"] == 2
        for name in ("hypotheses", "others"):
            spec, *given = job(name, **more)
            given[3] = tmp_path / f"{name}.jsonl"
            run_script("score", spec, *given, *kiwi, "--from-store")
            assert len(loaded) == 2
            alone = [Path(str(one).replace(f"/{name}/", "/alone/")) for one in given]
            run_script("score", spec, *alone, *kiwi, "--no-store")
            del loaded[2:]
            assert written(tmp_path / name) == written(tmp_path / "alone")

    def test_a_score_that_the_store_lacks_is_an_error(self, job, run_script, tmp_path):
        with pytest.raises(
            InputError, match=r"no score of toy_comet for 24 of 24 sentences.*`comet` job computes them"
        ):
            run_script("score", *job("first"), "--from-store")
        assert not (tmp_path / "first").exists()

    def test_a_score_that_is_no_number_is_named_with_its_file(self, fill, tmp_path, monkeypatch, segments):
        real = comet.unpadded_scores

        def failing(model, missing):
            wrong = (segments[0][0], segments[-1][1], segments[0][2])  # the first one of the second system
            return ((one, float("nan") if one == wrong else score) for one, score in real(model, missing))

        monkeypatch.setattr(comet, "unpadded_scores", failing)
        with pytest.raises(InputError, match=r"metric 'toy_comet': gave nan for sentence 1 of .*others\.jsonl"):
            fill()
        kept = sum(len(path.read_text().splitlines()) for path in (tmp_path / "store").glob("*.jsonl"))
        assert kept == 2 * len(segments) - 1
        assert not (tmp_path / "stamp.json").exists()
