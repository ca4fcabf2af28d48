"""Mixed grids, orders or ranks do not go into one table; older results, which have no records, do."""

from __future__ import annotations

import re

import pytest

from entropy_valley import files
from entropy_valley.analysis.alike import require_alike
from entropy_valley.analysis.params import Params
from entropy_valley.errors import InputError
from entropy_valley.provenance import made, record_path

DECODING = {
    "order": "med",
    "order_settings": {},
    "steps": 8,
    "schedule": "llada",
    "precision": "float32",
    "revision": 4,
}
GRID = [0.7, 0.8, 0.9]


@pytest.fixture
def cells(params):
    """Three seeds of two backbones in three directions, each with its records."""
    found = Params.parse(files.canonical(params)).cells
    for cell in found:
        of = {"backbone": cell.backbone, "direction": cell.direction}
        selector = {"ratios": GRID} if cell.method == "ev" else {}
        write("canvas", cell.canvas, {**of, "method": cell.method, "selector": selector, "revision": 4})
        write("decode", cell.hypotheses, {**of, **DECODING})
        write("score", cell.segments, {"direction": cell.direction, "revision": 1})
        training = {"lora": {"rank": 64}, "loss": {"weight": cell.backbone}}
        write("train", cell.adapter, {**of, "seed": cell.seed, "processes": cell.seed, "training": training})
    return found


def write(rule, path, params):
    with made(rule, params, [], [path]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def change(path, **settings):
    place = record_path(path)
    record = files.read_json(place)
    record["params"] |= settings
    files.write_json(place, record)


def test_the_settings_of_each_length_method_are_told(cells):
    told = require_alike(cells)
    assert told.keys() == {cell.direction for cell in cells}
    assert told["en-de"] == {"oracle": [{}], "ratio": [{}], "ev": [{"ratios": GRID}]}


CHANGES = {
    "canvas": ({"selector": {"ratios": [0.6, 0.8]}}, "its selector.ratios is [0.6, 0.8], but that of"),
    "hypotheses": ({"order_settings": {"p": 0.5}}, "its order_settings.p is 0.5, but that of"),
    "segments": ({"comet": {"batch_size": 2}}, "its comet is {'batch_size': 2}, but that of"),
    "adapter": ({"training": {"lora": {"rank": 8}}}, "its lora.rank is 8, but that of"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_unlike_cells_are_refused_with_both_files(cells, kind):
    settings, said = CHANGES[kind]
    cell = next(cell for cell in cells if cell.method == "ev" and cell.seed == 2)
    path, other = getattr(cell, kind), getattr(cells[0], kind)
    change(path, **settings)
    with pytest.raises(InputError, match=re.escape(f"{path}: {said}")) as error:
        require_alike(cells)
    assert other.name in error.value.problem and str(other) != str(path)


@pytest.mark.parametrize("key", ["revision", "precision"])
def test_what_all_cells_share(cells, key):
    change(cells[-1].hypotheses, **{key: "another"})
    with pytest.raises(InputError, match=rf"its {key} is another, but that of"):
        require_alike(cells)


def test_readings_that_a_backbone_may_have_of_its_own(cells):
    """K_t, the mask token, products and training are of a backbone; within it they are compared."""
    other = [cell for cell in cells if cell.backbone != cells[0].backbone]
    for cell in other:
        change(cell.hypotheses, schedule="floors", mask_token="may_be_revealed")
        binary = {"selector": {"ratios": GRID, "exact": False}} if cell.method == "ev" else {}
        change(cell.canvas, mask_token="may_be_revealed", **binary)
        change(cell.adapter, training={"betas": [0.9, 0.999]})
    assert require_alike(cells)["en-de"]["ev"] == [{"ratios": GRID}, {"ratios": GRID, "exact": False}]
    change(other[-1].hypotheses, schedule="llada")
    with pytest.raises(InputError, match="its schedule is llada, but that of"):
        require_alike(cells)


def test_results_without_records_are_let_pass(cells):
    for cell in cells[:9]:
        record_path(cell.canvas).unlink(missing_ok=True)
    change(cells[0].adapter, processes=1)
    assert require_alike(cells)
    assert require_alike(cells[:1]) == {}
