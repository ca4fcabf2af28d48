"""The configs of the repository, their schema, and how files are laid over each other."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley import plugins, tables
from entropy_valley.config import base_files, load_files, methods, params
from entropy_valley.config.expand import overlay
from entropy_valley.config.load import merge, read_files
from entropy_valley.config.schema import LengthMethods, json_schema
from entropy_valley.errors import InputError
from entropy_valley.lengths import LENGTH_METHODS, Sentence, make_method

ROOT = Path(__file__).parents[2]
SIZES = ("limit", "challenge")
OVERLAYS = [
    [],
    ["demo"],
    ["demo-full"],
    ["findings"],
    ["smallest"],
    ["tatoeba"],
    ["released"],
    ["authors", "released"],
    ["first"],
    ["authors"],
    ["demo-authors"],
]


@pytest.mark.parametrize("names", OVERLAYS, ids="+".join)
def test_every_config_loads(names):
    load_files([*base_files(ROOT), *(ROOT / "config" / f"{name}.yaml" for name in names)])


def test_a_file_lies_over_those_that_it_extends_and_each_counts_once(tmp_path):
    """As if they stood before it on the command line, in the folder of the file."""
    contents = {
        "low": {"x": 1, "y": {"a": 1, "b": 1}},
        "middle": {"extends": "low.yaml", "x": 2, "y": {"b": 2}},
        "other": {"extends": ["low.yaml"], "y": {"c": 3}},
        "sub/top": {"extends": ["../middle.yaml", "../other.yaml"], "z": 4},
    }
    (tmp_path / "sub").mkdir()
    for name, content in contents.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content))
    low, top = tmp_path / "low.yaml", tmp_path / "sub/top.yaml"
    merged = merge([top])
    assert {name: merged[name] for name in "xyz"} == {"x": 2, "y": {"a": 1, "b": 2, "c": 3}, "z": 4}
    assert merge([low, top]) == merged
    assert [Path(name).stem for name in read_files([low, top])] == ["low", "middle", "other", "top"]


def test_every_overlay_is_tested():
    """Those of the repository; a user's own file beside them is none of these."""
    listed = subprocess.run(["git", "ls-files", "config/*.yaml"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {Path(name).stem for name in listed.stdout.split()} - {"studies"} == {
        name for names in OVERLAYS for name in names
    }


EXTENDING = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", EXTENDING, re.DOTALL))
def test_every_documented_config_loads(load, tmp_path, monkeypatch, example):
    for name, code in re.findall(r"```python\n# (\w+\.py)(.*?)```", EXTENDING, re.DOTALL):
        (tmp_path / name).write_text(f"#{code}")
    monkeypatch.syspath_prepend(tmp_path)
    load(yaml.safe_load(example))


def test_the_schema_describes_the_top_level_keys():
    schema = json.loads(json_schema(tables.known()))
    assert not schema["additionalProperties"]
    assert {"matrix", "training", "length_methods"} <= schema["properties"].keys()


def test_a_variant_takes_over_what_it_does_not_say(load):
    mine = load({"backbones": {"mine": {"variant_of": "llada-8b", "label": "Mine", "shifted": True}}}).backbones["mine"]
    base = load({}).backbones["llada-8b"]
    assert (mine.family, mine.hub, mine.bos) == (base.family, base.hub, base.bos)
    assert (mine.label, mine.shifted, base.shifted) == ("Mine", True, None)


def test_the_schema_describes_every_key():
    schema = json.loads(json_schema(tables.known()))
    kinds = {"Experiment": schema, **schema["$defs"]}
    keys = [(kind, key, said) for kind, one in kinds.items() for key, said in one.get("properties", {}).items()]
    assert not [(kind, key) for kind, key, said in keys if not _is_described(said)]


def _is_described(said):
    """By itself, or, for a block of its own, by that block's description; what tells blocks apart says what it is."""
    return {"description", "const"} & said.keys() or any("$ref" in one for one in [said, *said.get("anyOf", [])])


METHODS = ["oracle", "ratio", "ev", "mine"]


def test_a_selector_of_the_users_own_is_let_in(load, tmp_path, monkeypatch):
    (tmp_path / "own_methods.py").write_text(
        "class Mine:\n    sees_reference = False\n    def __init__(self, share): pass\n"
        "    def propose(self, sentence, probes): pass\n    def choose(self, sentence, probes): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    mine = {"method": "own_methods:Mine", "share": 0.5}
    assert load({"matrix": {"methods": METHODS}, "length_methods": {"mine": mine}}).matrix.methods == METHODS


@pytest.mark.parametrize("mine", [{"method": "nowhere:Mine"}, {"method": "json:JSONDecoder", "share": 0.5}])
def test_a_selector_that_cannot_be_made_is_named_before_anything_runs(load, mine):
    with pytest.raises(InputError, match=r"length_methods\.mine"):
        load({"matrix": {"methods": METHODS}, "length_methods": {"mine": mine}})


def test_a_selector_of_ours_under_another_name(load):
    over = {
        "matrix": {"methods": ["oracle", "ratio", "ev", "ev_2", "ratio_0.9"], "directions": ["en-zh"]},
        "length_methods": {
            "ev_2": {"method": "ev", "ratios": {"en-zh": [0.5, 1.5]}},
            "ratio_0.9": {"method": "ratio", "ratios": {"en-zh": 0.9}},
        },
    }
    experiment = load(over)
    names = [methods.base_method(experiment, method) for method in experiment.matrix.methods]
    assert names == ["oracle", "ratio", "ev", "ev", "ratio"]
    settings = methods.method_settings(experiment, "ev_2", "en-zh")
    assert settings == {"method": "ev", "ratios": [0.5, 1.5], "score": "mean"}
    assert make_method("ev_2", settings).propose(Sentence(10), {}) == {6, 16}
    ratio = make_method("ratio_0.9", methods.method_settings(experiment, "ratio_0.9", "en-zh"))
    assert ratio.choose(Sentence(10), {}).length == 9


def test_one_ratio_for_all_directions(load):
    over = {
        "matrix": {"methods": ["oracle", "ratio", "ev", "ratio_0.70"]},
        "length_methods": {"ratio_0.70": {"method": "ratio", "ratios": 0.70}},
    }
    experiment = load(over)
    for direction in experiment.matrix.directions:
        settings = methods.method_settings(experiment, "ratio_0.70", direction)
        assert settings == {"method": "ratio", "ratios": 0.7, "reserve_eos_slot": False}
        assert make_method("ratio_0.70", settings).choose(Sentence(10), {}).length == 7


def test_every_selector_of_ours_has_a_block_and_the_papers_config_sets_it_up(load):
    blocks = load({}).length_methods
    assert LengthMethods.model_fields.keys() == LENGTH_METHODS.keys()
    assert all(getattr(blocks, name) is not None for name in LENGTH_METHODS)


def test_a_reveal_order_and_its_settings_reach_the_job(load, tmp_path, monkeypatch):
    code = "class Mine:\n    def __init__(self, reach): pass\n    def scores(self, slots): pass\n"
    (tmp_path / "own_orders.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    own = {"matrix": {"orders": ["med", "mine"]}, "reveal_orders": {"mine": {"order": "own_orders:Mine", "reach": 2}}}
    mine = {"order": plugins.with_code("own_orders:Mine"), "order_settings": {"reach": 2}}
    assert methods.order_settings(load(own), "mine") == mine
    assert methods.order_settings(load(own), "med") == {"order": "med", "order_settings": {}}
    assert methods.order_settings(load(own), "hybrid_75") == {"order": "hybrid", "order_settings": {"p": 0.75}}


@pytest.mark.parametrize("mine", [{"order": "nowhere:Mine"}, {"order": "json:JSONDecoder", "share": 0.5}])
def test_an_order_that_cannot_be_made_is_named_before_anything_runs(load, mine):
    with pytest.raises(InputError, match=r"reveal_orders\.mine"):
        load({"matrix": {"orders": ["med", "mine"]}, "reveal_orders": {"mine": mine}})


values = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(st.text(max_size=2), values, max_size=3)


@given(mappings, mappings)
def test_what_is_laid_over_wins_and_laying_it_twice_changes_nothing(base, over):
    merged = overlay(base, over)
    assert overlay(merged, over) == merged
    assert merged.keys() == base.keys() | over.keys()
    assert overlay(base, {}) == base
    assert overlay({}, over) == over


def test_mappings_are_merged_and_lists_replaced():
    assert overlay({"a": {"b": [1, 2], "c": 3}}, {"a": {"b": [4]}}) == {"a": {"b": [4], "c": 3}}


def test_a_challenge_subset_is_drawn_from_what_its_source_has_and_no_larger_than_any_test_set(load):
    over = {"sources": {"hard": {"name": "wmt22", "challenge": 400}, "harder": {"name": "wmt22", "challenge": 5}}}
    sizes = [
        {
            key: value
            for key, value in json.loads(params.testset(load(over | more), "en-zh", name)).items()
            if key in SIZES
        }
        for more in ({}, {"corpus": {"test_limit": 12}})
        for name in ("hard", "harder", "wmt22")
    ]
    assert sizes == [
        {"limit": None, "challenge": 400},
        {"limit": None, "challenge": 5},
        {"limit": None},
        {"limit": None, "challenge": 12},
        {"limit": None, "challenge": 5},
        {"limit": 12},
    ]
