"""Short forms: ratios taken from another method; and the file that an error names."""

from __future__ import annotations

import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment.config.expand import expand


def methods(**blocks):
    return expand({"length_methods": blocks})[0]["length_methods"]


def test_ratios_of_another_method_below_those_of_its_own():
    ev = {"ratios": {"en-zh": [1], "en-de": [2]}}
    mine = {"same_ratios_as": "ev", "ratios": {"en-de": [3]}}
    assert methods(ev=ev, mine=mine)["mine"] == {"ratios": {"en-zh": [1], "en-de": [3]}}
    assert methods(ev=ev, mine={"same_ratios_as": "ev"})["mine"] == ev


def test_a_method_without_ratios_to_take_is_named(load):
    line = "mine.yaml: length_methods.cal.same_ratios_as = 'oracle': names no method"
    with pytest.raises(InputError, match=line):
        load({"length_methods": {"cal": {"same_ratios_as": "oracle"}}, "tables": {"studies": []}})


def test_a_bad_ratio_that_others_take_is_named_once(load):
    line = r"1 problem:\n.*mine.yaml: length_methods.ev.ratios.en-zh.0 = -1: must be greater"
    with pytest.raises(InputError, match=line):
        load({"length_methods": {"ev": {"ratios": {"en-zh": [-1]}}}, "tables": {"studies": []}})


def test_the_file_that_sets_a_key_is_named(load):
    with pytest.raises(InputError, match=r"config\.yaml: tables\.order = 'med'"):
        load({"matrix": {"orders": ["random"]}})
