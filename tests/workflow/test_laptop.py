"""The tiny twin of config/laptop.yaml: random checkpoints in the released formats go through the workflow."""

from __future__ import annotations

import csv

import pytest
import tiny_checkpoints
from workspace import Workspace

from entropy_valley import results

pytestmark = pytest.mark.slow

BACKBONES = {"qwen3-0.6b": "a2d_qwen3", "eurobert-210m": "eurobert"}
TWIN = {
    "device": "cpu",
    "matrix": {"directions": ["en-de"], "steps": [4]},
    "tables": {"steps": 4, "metrics": ["toy_comet", "bleu", "chrf"]},
    "sources": {"mine": {"name": "tsv", "file": "pairs.tsv", "columns": {"en": 1, "de": 2}}},
    "directions": {"en-de": {"train": "mine", "tests": ["mine"]}},
    "corpus": {
        "train": 16,
        "dev": 8,
        "test_limit": 4,
        "filters": {"en": {"words": [1, 200]}, "de": {"words": [1, 200]}},
    },
    "training": {"epochs": None, "max_steps": 2, "global_batch": 4, "precision": "float32", "checkpoint_every": 2},
    "decoding": {"precision": "float32"},
    "scoring": {
        "comet": {"checkpoint": None, "training": {"seed": 1, "steps": 30, "width": 32, "minimum_spearman": -1.0}}
    },
    "valley": {"backbones": []},
    "analysis": {"resamples": 200},
}


@pytest.fixture(scope="module")
def laptop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("laptop")
    for family in BACKBONES.values():
        tiny_checkpoints.write(folder / "released" / family, family, eos=4, context=256)
    folders = {name: {"hub": None, "folder": f"released/{family}"} for name, family in BACKBONES.items()}
    pairs = "".join(f"{row['source']}\t{row['target']}\n" for row in tiny_checkpoints.ROWS)
    (folder / "pairs.tsv").write_text(pairs)
    return Workspace(folder, "config/laptop.yaml", TWIN | {"backbones": folders}, real=True)


def test_its_plan_runs_to_the_main_table(laptop):
    jobs = laptop.planned()
    assert sum(job.startswith("train ") for job in jobs) == 2 and not any("pretrain" in job for job in jobs)
    other = "results/laptop/en-de/eurobert-210m/seed1/matrix/translations.jsonl"
    laptop.run("--cores", "2", "results/laptop/tables/main.csv", other)
    with open(laptop.folder / "results/laptop/tables/main.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    methods = {"oracle", "ratio", "ratio_eos", "ev", "ev_fit"}
    assert (
        {row["method"] for row in rows} == {cell.method for cell in results.systems(laptop.folder / other)} == methods
    )
