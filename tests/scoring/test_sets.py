"""Scores of a set of cells, by every metric of a config."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from run_rule import run_here

from entropy_valley import files, results
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS, System
from entropy_valley.scoring import comet, comet_checkpoint, make_metric, metrics, sets

SPEC = {"direction": "en-zh", "revision": 1, "target_language": "zh", "comet": {"checkpoint": None, "batch_size": 1}}
EV, ORACLE, OTHER = System("test", "ev", "med", 8), System("test", "oracle", "med", 8), System("other", "ev", "med", 8)
KIWI = {"metric": "comet", "checkpoint": "Unbabel/wmt22-cometkiwi-da", "reference_free": True}
GUIDE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
OWN = re.search(r"```python\n(# my_metrics\.py.*?)```", GUIDE, re.DOTALL)[1]
WITHOUT_TORCH = """
import json, sys
from entropy_valley.scoring import sets
sets.write(*json.loads(sys.argv[1]))
assert not {"torch", "comet", "transformers"} & set(sys.modules)
"""


@pytest.fixture
def job(tmp_path, comet_folder, other_folders, segments):
    """Scores a set of cells into a folder: rows and entry of each cell. The second cell has the hypotheses of the first
    in another order, the third those of another test set."""
    texts = [hypothesis for _, hypothesis, _ in segments]
    of_cells = {EV: texts, ORACLE: texts[::-1], OTHER: texts[:5]}
    testsets = {"test": segments, "other": segments[:5]}
    for name, rows in testsets.items():
        pairs = ({"id": str(i), "source": s, "target": t} for i, (s, _, t) in enumerate(rows))
        files.write_jsonl(tmp_path / f"{name}.jsonl", pairs)

    class Scoring:
        def __init__(self):
            self.store, self.folder = tmp_path / "store", tmp_path
            self.checkpoints = {"comet": str(comet_folder), "kiwi": str(other_folders["kiwi"])}

        def arguments(self, name, cells=(EV,), store=tmp_path / "store", **more):
            spec, here = {**SPEC, **more, "made_from": {"translations": "a digest"}}, tmp_path / name
            rows = {cell: [{"id": str(i), "hypothesis": h} for i, h in enumerate(of_cells[cell])] for cell in cells}
            files.write_jsonl(here / TRANSLATIONS, results.tidy(rows))
            how = {"checkpoints": self.checkpoints, "device": "cpu", "store": store and str(store)}
            read = [str(tmp_path / f"{name}.jsonl") for name in dict.fromkeys(cell.testset for cell in cells)]
            return spec, how, read, str(here / TRANSLATIONS), str(here / SCORES)

        def __call__(self, name, cells=(EV,), **more):
            sets.write(*self.arguments(name, cells, **more))
            out = tmp_path / name / SCORES
            return {
                cell: (results.systems(out)[cell], results.entries(results.record_path(out))[cell]) for cell in cells
            }

    return Scoring()


def test_a_header_says_of_what_the_scores_were_made(job, tmp_path, comet_folder):
    """Through the script; the scores themselves: golden.json."""
    spec, how, read, translations, out = job.arguments("first")
    header = Path(out).with_suffix(".json")
    inputs = {"translations": translations, "testsets": read, "comet": []}
    run_here("score", spec, inputs, {"rows": out, "header": header}, how)
    system = results.entries(results.record_path(out))[EV]
    assert "|model:embedded|" in system["signatures"]["toy_comet"] and "tok:zh" in system["signatures"]["bleu"]
    assert system["digests"]["testset"] == files.file_digest(tmp_path / "test.jsonl")
    assert system["digests"]["comet"] == files.file_digest(comet_folder / comet_checkpoint.CHECKPOINT)
    record = files.read_json(header)
    assert record["rule"] == "score" and record["params"] == spec
    assert record["inputs"].keys() == {*read, translations, how["checkpoints"]["comet"]}


def test_one_load_scores_all_cells_as_each_alone(job, monkeypatch):
    """Without a store, too: COMET reads every different sentence once."""
    more = {"metrics": {"kiwi": KIWI}, "store": None}
    loaded, load = [], comet.load
    monkeypatch.setattr(comet, "load", lambda path, device: loaded.append(path) or load(path, device))
    whole = job("whole", (EV, ORACLE, OTHER), **more)
    assert len(loaded) == len(set(loaded)) == 2
    for cell, found in whole.items():
        ((rows, entry),) = job(f"{cell.testset} {cell.method}", (cell,), **more).values()
        assert rows == found[0]
        for one in (entry, found[1]):
            one["digests"].pop("translations", None)
        assert entry == found[1]


def test_with_a_full_store_torch_is_not_imported(job):
    job("first", (EV, OTHER))
    given = json.dumps(job.arguments("second", (EV, OTHER)))
    subprocess.run([sys.executable, "-c", WITHOUT_TORCH, given], check=True)


def test_a_further_metric_loads_only_its_own_model(job, monkeypatch):
    _, first = job("first")[EV]
    loaded, load = [], comet.load
    monkeypatch.setattr(comet, "load", lambda path, device: loaded.append(path) or load(path, device))
    rows, more = job("more", metrics={"kiwi": KIWI})[EV]
    checkpoint = Path(job.checkpoints["kiwi"], comet_checkpoint.CHECKPOINT)
    assert loaded == [checkpoint]
    assert all(more[key] == first[key] for key in ("toy_comet", "bleu", "chrf"))
    assert "|model:Unbabel/wmt22-cometkiwi-da|" in more["signatures"]["kiwi"]
    assert more["digests"]["kiwi"] == files.file_digest(checkpoint)
    assert more["kiwi"] == sum(row["kiwi"] for row in rows) / len(rows)


def test_a_metric_of_the_users_own(job, tmp_path, segments, monkeypatch):
    (tmp_path / "my_metrics.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    rows, system = job("own", metrics={"numbers": {"metric": "my_metrics:Numbers", "pattern": "Please"}})[EV]
    assert system["numbers"] == sum(row["numbers"] for row in rows) / len(segments)
    assert [row["numbers"] for row in rows] == [float("Please" not in source) for source, _, _ in segments]
    assert system["signatures"]["numbers"] == "numbers|version:1|pattern:Please"


def test_a_score_that_is_no_number_is_named_with_its_cell(job, monkeypatch, segments):
    """All others are in the store by then."""
    real = comet.unpadded_scores

    def failing(model, missing, rows):
        wrong = (segments[0][0], segments[-1][1], segments[0][2])  # the first one of the second system
        return ((one, float("nan") if one == wrong else score) for one, score in real(model, missing, rows))

    monkeypatch.setattr(comet, "unpadded_scores", failing)
    with pytest.raises(InputError, match=r"metric 'toy_comet': gave nan for sentence 1 of test oracle med-T8\."):
        job("first", (EV, ORACLE))
    kept = sum(len(path.read_text().splitlines()) for path in job.store.glob("*.jsonl"))
    assert kept == 2 * len(segments) - 1
    assert not (job.folder / "first" / SCORES).exists()


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ("acb", "set: test ev: id 'c' where 'b' is due"),
        ("ab", "set: test ev: id 'no sentence' where 'c' is due"),
        ("abcd", "set: test ev: id 'd' where 'no sentence' is due"),
    ],
)
def test_outputs_that_are_not_of_the_test_set_are_named(tmp_path, ids, says):
    testset = tmp_path / "test.jsonl"
    files.write_jsonl(testset, ({"id": name, "source": f"s{name}", "target": f"t{name}"} for name in "abc"))
    outputs = [{"id": name, "hypothesis": f"h{name}"} for name in ids]
    with pytest.raises(InputError, match=says):
        sets.read_outputs(testset, outputs, "set: test ev")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("[1.0]", "metric 'mine': gave 1 scores for 2 sentences"),
        ("[1.0, float('nan')]", "metric 'mine': gave nan for sentence 2"),
        ("{0: 0.9, 1: 0.8}", "metric 'mine': gave a dict, not a score for each sentence"),
        ("1 / 0", "mine.py, Mine.segment_scores: metric 'mine', 2 sentences: ZeroDivisionError: division by zero"),
        ("['high', 'low']", "mine.py, Mine.segment_scores: metric 'mine', 2 sentences: ValueError: could not convert"),
    ],
)
def test_a_metric_that_fails_is_named(users_class, body, says):
    scores = f"    def segment_scores(self, *_):\n        return {body}\n"
    name = users_class(f"class Mine:\n    decimals, signature = 1, 'mine'\n{scores}")
    with pytest.raises(InputError, match=re.escape(says)):
        metrics.score("mine", make_metric(name, {}), ["a", "b"], ["c", "d"], ["e", "f"])
