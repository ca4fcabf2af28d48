"""Short forms: methods made by a list, ratios taken from another method; and the file that an error names."""

from __future__ import annotations

import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment.config.expand import expand

EACH = "ratio_{ratios:.2f}"


def methods(**blocks):
    return expand({"length_methods": blocks})[0]["length_methods"]


def test_a_list_makes_a_method_of_each_value():
    made = methods(**{"ev_reassigned_{seed}": {"method": "reassigned", "of": "ev", "each": {"seed": [1, 2]}}})
    assert made == {f"ev_reassigned_{seed}": {"method": "reassigned", "of": "ev", "seed": seed} for seed in (1, 2)}
    assert methods(**{EACH: {"each": {"ratios": [0.6, 2]}}}) == {
        "ratio_0.60": {"ratios": 0.6},
        "ratio_2.00": {"ratios": 2},
    }


def test_a_block_of_the_same_name_lies_over_the_one_that_is_made():
    over = {"ratio_0.60": {"reserve_eos_slot": False}, EACH: {"each": {"ratios": [0.6]}}}
    assert methods(**over) == {"ratio_0.60": {"ratios": 0.6, "reserve_eos_slot": False}}


def test_a_block_of_a_list_stands_for_all_its_methods():
    made = {"length_methods": {"m_{seed}": {"each": {"seed": [1, 2]}}}, "matrix": {"methods": ["ev", "m_{seed}"]}}
    made["studies"] = {"mine": {"methods": {"en-zh": ["m_{seed}", "ev"]}}}
    config, _ = expand(made)
    assert config["matrix"]["methods"] == ["ev", "m_1", "m_2"]
    assert config["studies"]["mine"]["methods"] == {"en-zh": ["m_1", "m_2", "ev"]}


def test_ratios_of_another_method_below_those_of_its_own():
    ev = {"ratios": {"en-zh": [1], "en-de": [2]}}
    mine = {"same_ratios_as": "ev", "ratios": {"en-de": [3]}}
    assert methods(ev=ev, mine=mine)["mine"] == {"ratios": {"en-zh": [1], "en-de": [3]}}
    assert methods(ev=ev, mine={"same_ratios_as": "ev"})["mine"] == ev


CASES = [
    (
        {EACH: {"each": [0.6]}},
        f"mine.yaml: length_methods.{EACH}.each = [0.6]: give one key and the list of its values",
    ),
    (
        {"mine": {"method": "reassigned", "each": {"seed": [1]}}},
        "length_methods.mine.each.seed = [1]: no name of its",
    ),
    ({"m_{a:.1f}": {"each": {"a": [1, 1.01]}}}, "no name of its own for 1.01"),
    (
        {EACH: {"each": {"ratios": [-1]}}},
        f"mine.yaml: length_methods.{EACH}.each.ratios.0 = -1: must be greater",
    ),
    ({"cal": {"same_ratios_as": "oracle"}}, "mine.yaml: length_methods.cal.same_ratios_as = 'oracle': names no method"),
]


@pytest.mark.parametrize(("blocks", "line"), CASES, ids=range(len(CASES)))
def test_a_bad_short_form_is_named(load, blocks, line):
    with pytest.raises(InputError) as caught:
        load({"length_methods": blocks, "tables": {"studies": []}})
    assert line in str(caught.value)


def test_the_file_of_the_studies_is_named(load):
    with pytest.raises(InputError, match=r"config/studies\.yaml: studies\.ratio_sweep\.methods.*'ratio_0\.70' is not"):
        load({"length_methods": {EACH: {"each": {"ratios": [0.6]}}}, "tables": {"studies": ["ratio_sweep"]}})
