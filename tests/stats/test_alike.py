"""Mixed grids, orders or ranks do not go into one table."""

from __future__ import annotations

import re

import pytest
from entropy_valley.stats.cells import Params
from entropy_valley.stats.signatures import require_alike
from fake_sets import change_params

from entropy_valley.errors import InputError
from entropy_valley.results import made, record_path

GRID = {"ratios": [0.7, 0.8, 0.9]}
METHODS = {"oracle": {}, "ratio": {}, "ev": GRID}
MED = {"order": "med", "order_settings": {}}


@pytest.fixture
def cells(params):
    """Three seeds of two backbones in three directions, each with the records of its set and its adapter."""
    found = Params(params).cells
    for cell in found:
        change_params(cell.translations_file, methods=METHODS)
        training = {"lora": {"rank": 64}, "loss": {"weight": cell.backbone}}
        with made("train", {"seed": cell.seed, "training": training}, [], [cell.adapter_file]):
            cell.adapter_file.parent.mkdir(parents=True, exist_ok=True)
            cell.adapter_file.touch()
    return found


def test_the_settings_of_each_length_method_are_told(cells):
    told = require_alike(cells)
    assert told.keys() == {cell.direction for cell in cells}
    assert told["en-de"] == {"oracle": [{}], "ratio": [{}], "ev": [GRID]}


CHANGES = {
    "translations_file": [
        ({"methods": METHODS | {"ev": {"ratios": [0.6, 0.8]}}}, "its methods.ev.ratios is [0.6, 0.8], but that of"),
        ({"orders": {"med": MED | {"order_settings": {"p": 0.5}}}}, "its orders.med.order_settings.p is 0.5, but that"),
        ({"prompt": "Another"}, "its prompt is Another, but that of"),
        ({"precision": "bfloat16"}, "its precision is bfloat16, but that of"),
        ({"methods": {}}, "its methods.ev.ratios is absent, but that of"),
    ],
    "scores_file": [({"comet": {"batch_size": 2}}, "its comet is {'batch_size': 2}, but that of")],
    "adapter_file": [({"training": {"lora": {"rank": 8}}}, "its lora.rank is 8, but that of")],
}


@pytest.mark.parametrize(("kind", "settings", "said"), [(kind, *one) for kind, more in CHANGES.items() for one in more])
def test_unlike_cells_are_refused_with_both_files(cells, kind, settings, said):
    cell = next(cell for cell in cells if cell.seed == 2)
    path, other = getattr(cell, kind), getattr(cells[0], kind)
    change_params(path, **settings)
    with pytest.raises(InputError, match=re.escape(f"{path}: {said}")) as error:
        require_alike(cells)
    assert str(other) in error.value.problem and str(other) != str(path)


def test_readings_that_a_backbone_may_have_of_its_own(cells):
    """K_t, the mask token, products, training and BLEU are of a backbone; within it they are compared."""
    other = [cell for cell in cells if cell.backbone != cells[0].backbone]
    binary = METHODS | {"ev": GRID | {"exact": False}}
    for cell in other:
        change_params(cell.translations_file, schedule="floors", mask_token="may_be_revealed", methods=binary)
        change_params(cell.adapter_file, training={"betas": [0.9, 0.999]})
        change_params(cell.scores_file, bleu={"tokenize": "zh"})
    assert require_alike(cells)["en-de"]["ev"] == [GRID, GRID | {"exact": False}]


@pytest.mark.parametrize("change", [{"schedule": "floors"}, {"methods": METHODS | {"ev": GRID | {"exact": False}}}])
def test_runs_of_one_backbone_share_its_readings(cells, change):
    change_params(next(cell for cell in cells if cell.seed == 3).translations_file, **change)
    with pytest.raises(InputError, match=r"its (schedule|methods\.ev\.exact) is .*, but that of"):
        require_alike(cells)


def test_a_variant_has_no_adapter_of_its_own(cells):
    change_params(cells[0].adapter_file, training={})
    record_path(cells[0].adapter_file).unlink()
    assert require_alike(cells[:1])


def test_a_set_without_its_header_is_refused(cells):
    record_path(cells[0].translations_file).unlink()
    with pytest.raises(InputError, match=r"translations\.json: file not found"):
        require_alike(cells[:1])
