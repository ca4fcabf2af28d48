"""Finished cells as mt-metrics-eval reads them: its README has the format."""

from __future__ import annotations

import pytest
from fake_sets import put

from entropy_valley import files
from entropy_valley.config import base_files, load_files
from entropy_valley.config.matrix import cells, sets_of
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.stats.cells import ScoredCell
from entropy_valley.tables import mt_metrics_eval


@pytest.fixture(scope="module")
def paper():
    return load_files(base_files())


@pytest.fixture
def experiment(paper, tmp_path):
    """Two scored cells of one test set; one of them has no chrF."""
    root = tmp_path / "results"
    found = paper.model_copy(update={"results": str(root)})
    pair = [cell for cell in cells(found) if cell.run.direction == "en-zh"][:2]
    rows = [{"id": f"s{n}", "source": f"source {n}", "target": f"目标\n{n}"} for n in range(3)]
    files.write_jsonl(root / f"corpus/en-zh/test/{pair[0].testset}.jsonl", rows)
    for number, cell in enumerate(pair):
        chrf = {} if number else {"chrf": 50.0}
        scored = [{"id": row["id"], "comet22": 0.5 + number, **chrf} for row in rows]
        one = ScoredCell(**cell.key(), path=sets_of(found).folder(cell))
        put(one, TRANSLATIONS, [{"id": row["id"], "hypothesis": f"文 {number}"} for row in rows])
        put(one, SCORES, scored, comet22=0.5 + number, bleu=30.0, **chrf)
    return found, pair


def test_every_file_has_its_place_and_a_line_for_each_sentence(experiment, tmp_path):
    found, pair = experiment
    names, testset = [mt_metrics_eval.system(cell) for cell in pair], pair[0].testset
    assert mt_metrics_eval.export(found, tmp_path / "out") == [
        f"{testset} en-zh: 2 systems, 3 sentences, comet22, bleu",
    ]
    texts = {
        str(path.relative_to(tmp_path / "out" / testset)): path.read_text(encoding="utf-8").splitlines()
        for path in (tmp_path / "out").rglob("*.*")
    }
    first, second = names
    assert texts == {
        "sources/en-zh.txt": ["source 0", "source 1", "source 2"],
        "references/en-zh.ref.txt": ["目标 0", "目标 1", "目标 2"],
        "documents/en-zh.docs": [f"{testset} {testset}"] * 3,
        f"system-outputs/en-zh/{first}.txt": ["文 0"] * 3,
        f"system-outputs/en-zh/{second}.txt": ["文 1"] * 3,
        "metric-scores/en-zh/comet22-ref.seg.score": [f"{first}\t0.5"] * 3 + [f"{second}\t1.5"] * 3,
        "metric-scores/en-zh/comet22-ref.sys.score": [f"{first}\t0.5", f"{second}\t1.5"],
        "metric-scores/en-zh/bleu-ref.sys.score": [f"{first}\t30.0", f"{second}\t30.0"],
    }
    assert all(len(name.split()) == 1 and "/" not in name for name in names) and first != second


def test_nothing_is_overwritten_and_nothing_written_in_vain(experiment, paper, tmp_path):
    with pytest.raises(InputError, match="exists already"):
        mt_metrics_eval.export(experiment[0], tmp_path)
    with pytest.raises(InputError, match="no cell of this config is scored"):
        mt_metrics_eval.export(paper.model_copy(update={"results": str(tmp_path / "none")}), tmp_path / "out")
    assert not (tmp_path / "out").exists()
