"""A mistyped key or name of the config: what it may mean, and one error for one mistake."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entropy_valley.errors import InputError
from entropy_valley.experiment import base_files, loading, typos

PAPER = loading.merge(base_files())
KINDS = ("selector", "order", "name", "metric")  # what these keys say decides which others a block may have


def of_the_schema(node, path=()):
    """The paths of keys that are no names of the user's."""
    for key, value in node.items() if isinstance(node, dict) else ():
        if len(key) > 3 and key not in KINDS and path != ("length_methods",) and key in typos.keys(path, PAPER):
            yield (*path, key)
        yield from of_the_schema(value, (*path, key))


KEYS = sorted(of_the_schema(PAPER))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sampled_from(KEYS), st.integers(0, 2))
def test_a_key_without_one_of_its_letters_is_one_problem_that_names_it(path, letter):
    key = path[-1]
    mistyped = key[: letter + 1] + key[letter + 2 :]
    with pytest.raises(InputError) as caught:
        loading.load(renamed(PAPER, path, mistyped))
    first, line, *_ = str(caught.value).splitlines()
    assert first == "config: 1 problem:"
    assert mistyped in line and f"unknown key; did you mean {key}" in line


def renamed(block, path, name):
    """The block with the last key of a path called otherwise."""
    key, *rest = path
    if not rest:
        return {name if one == key else one: value for one, value in block.items()}
    return {**block, key: renamed(block[key], rest, name)}


@pytest.mark.parametrize(
    ("over", "problem"),
    [
        ({"matrix": {"backbones": ["lada-8b"]}}, "'lada-8b' is not defined; did you mean llada-8b, llama3-8b or llada"),
        ({"matrix": {"orders": ["mde"]}}, "'mde' is no reveal order; did you mean med? "),
        ({"matrix": {"methods": ["oracle", "ratio", "evv"]}}, "'evv' is not defined; did you mean ev? "),
        ({"matrix": {"directions": ["en-zg"]}}, "'en-zg' is not defined; did you mean en-zh or en-de? "),
        ({"backbones": {"mine": {"varian_of": "llada-8b", "label": "x"}}}, "unknown key; did you mean variant_of?"),
        ({"backbones": {"mine": {"variant_of": "llada-8", "label": "x"}}}, "did you mean llada-8b, "),
        ({"backbones": {"llada-8b": {"family": "lada"}}}, "unknown. Did you mean llada or llama3? Name one of"),
        ({"backbones": {"llada-8b": {"training": {"other": 1}}}}, "unknown key; remove it or mend its spelling"),
        (
            {
                "lenght_methods": {"mine": {"selector": "ev", "ratios": [1.0]}},
                "matrix": {"methods": ["oracle", "ratio", "ev", "mine"]},
            },
            "lenght_methods: unknown key; did you mean length_methods?",
        ),
        ({"length_methods": {"mine": {"selector": "ev", "ratos": [1.0]}}}, "unknown key; did you mean ratios?"),
        ({"length_methods": {"ev": {"scoer": "sum"}}}, "ev.scoer = 'sum': unknown key; did you mean score?"),
        ({"reveal_orders": {"mine": {"order": "hybrid", "p": 0.5, "pp": 1}}}, "unknown key; did you mean p?"),
        ({"length_methods": {"mine": {"selectr": "ev"}}}, "it is required. Is selectr this key, mistyped?"),
        ({"length_methods": {"evv": {"ratios": [1.0]}}}, "selector is missing: it is required. Did you mean ev?"),
        ({"length_methods": {"mine": {"selector": "evv"}}}, "'evv': did you mean ev? give module:Class, or one of"),
        ({"sources": {"mine": {"name": "jsonl"}}}, "Did you mean json_lines?"),
        ({"sources": {"mine": {"files": "a"}}}, "sources.mine: needs the key 'name'"),
        (
            {"length_methods": {"mine": {"selector": "ev", "same_ratios_as": "evv"}}},
            "did you mean ev? `length_methods` has",
        ),
        ({"length_methods": {"mine": {"selector": "ev", "same_ratios_as": "q"}}}, "names no method that sets `ratios`"),
        ({"decoding": {"prompt_cache": {"refresh": 0}}}, "must be greater than 0, or 'never'"),
        ({"sources": {"mine": {"name": "tsv", "file": "a", "columns": {"en": 0, "de": 2}}}}, "columns.en = 0: must be"),
        (
            {"scoring": {"metrics": {"mine": {"metric": "comet", "label": "x", "file": 1}}}},
            "is it checkpoint, which is",
        ),
        ({"matrix": {"methods": "ev"}}, "must be a valid list"),
        ({"device": "cdua"}, "Did you mean cuda?"),
        ({"tables": {"studies": ["grdis"]}}, "'grdis' is not defined; did you mean readings? `studies` has these and "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_mistake_is_one_problem(load, over, problem):
    with pytest.raises(InputError) as caught:
        load(over)
    first, line, *_ = str(caught.value).splitlines()
    assert first == "config: 1 problem:" and problem in line, caught.value
