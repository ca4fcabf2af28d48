from __future__ import annotations

import math
from pathlib import Path

import fake_results
import pytest
from fake_sets import put

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.stats.cells import Params
from entropy_valley.tables.dream_instruct import measure


@pytest.fixture
def params(tmp_path):
    return fake_results.write_instruct(tmp_path)


def measured(params):
    frame = measure(Params(params))
    return frame, frame.set_index(["backbone", "method", "metric"])["value"]


def test_numbers_are_those_of_the_files(params):
    cell = next(cell for cell in params["cells"] if cell["method"] == "ev")
    name, adapter = cell["backbone"], Path(params["variants"][cell["backbone"]]["adapter"])
    header = "step,loss,cross_entropy,learning_rate,gradient_norm\n"
    files.write_text(adapter / "losses.csv", header + "1,9,8,0.1,1\n2,6,5,0.1,1\n3,12,4,0.1,1\n")
    hypotheses = [{"id": f"t{i}", "hypothesis": "ab" if i < 10 else ""} for i in range(40)]
    put(cell, TRANSLATIONS, hypotheses)
    put(cell, SCORES, comet22=0.25)
    _, values = measured(params)
    assert values[name, "", "cross_entropy_final"] == 4
    assert values[name, "", "cross_entropy_last_mean"] == pytest.approx(17 / 3)
    assert (values[name, "", "cross_entropy_minimum"], values[name, "", "cross_entropy_minimum_step"]) == (4, 3)
    assert values[name, "", "cross_entropy_over_uniform"] == pytest.approx(4 / math.log(152_064))
    assert (values[name, "", "loss_final"], values[name, "", "loss_minimum_step"]) == (12, 2)
    assert (values[name, "ev", "empty_rate"], values[name, "ev", "mean_characters"]) == (0.75, 0.5)
    assert values[name, "ev", "comet22"] == 0.25


@pytest.mark.parametrize("name", ["losses.csv", "adapter.json"])
def test_a_missing_file_of_the_adapter(params, name):
    path = next(Path(variant["adapter"]) / name for variant in params["variants"].values() if variant["adapter"])
    path.unlink()
    with pytest.raises(InputError, match=f"{name}: file not found"):
        measured(params)


@pytest.mark.parametrize("size", [None, 1, "many"])
def test_a_card_without_a_vocabulary(params, size):
    adapter = next(variant["adapter"] for variant in params["variants"].values() if variant["adapter"])
    files.write_json(f"{adapter}/adapter.json", {"vocabulary": size})
    with pytest.raises(InputError, match="vocabulary is"):
        measured(params)


def test_outputs_of_another_test_set(params):
    files.write_jsonl(params["testset"], [{"id": "other", "source": "a", "target": "b"}])
    with pytest.raises(InputError, match="'other' is due"):
        measured(params)


def test_variants_come_in_the_order_of_the_cells(params):
    found, _ = measured({**params, "variants": dict(sorted(params["variants"].items()))})
    assert list(found["backbone"].unique()) == list(measured(params)[0]["backbone"].unique())
