import math
from decimal import ROUND_FLOOR

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readings import reading, search

from entropy_valley.errors import InputError
from entropy_valley.lengths import Sentence, make_method
from entropy_valley.lengths.base import candidate_length


def test_ratio_probes_nothing():
    length_method = make_method("ratio", {"ratios": 0.7, "reserve_eos_slot": True})
    assert list(length_method.propose(Sentence(10), {})) == []
    assert length_method.choose(Sentence(10), {}).length == 8
    assert make_method("ratio", {"ratios": 0.7, "reserve_eos_slot": False}).choose(Sentence(10), {}).length == 7


@pytest.mark.parametrize("noise", [0.0, 1e-9, -1e-9])
def test_ev_breaks_a_tie_towards_the_shorter_canvas_even_through_noise(noise):
    probes = {6: reading(*[0.5 + noise] * 5, 9), 4: reading(0.5, 0.5, 0.5, 9), 5: reading(0.6, 0.6, 0.6, 0.6, 9)}
    assert make_method("ev", {"ratios": [1]}).choose(Sentence(4), probes).length == 4


VARIANTS = {3: reading(1.0, 2.0, 99.0), 5: reading(0.4, 0.6, 1.0, 4.0, 0.0), 9: reading(*[1.4] * 8, 0.0)}


@pytest.mark.parametrize(
    ("score", "length", "scores"),
    [
        ("mean", 9, [1.5, 1.5, 1.4]),
        ("sum", 3, [3.0, 6.0, 11.2]),
        ("length_normalised", 9, [1.5 / math.log(3), 1.5 / math.log(5), 1.4 / math.log(9)]),
        ("median", 5, [1.5, 0.8, 1.4]),
    ],
)
def test_evs_other_scores(score, length, scores):
    choice = make_method("ev_other", {"method": "ev", "ratios": [1], "score": score}).choose(Sentence(4), VARIANTS)
    assert choice.length == length
    assert [choice.scores[one] for one in VARIANTS] == pytest.approx(scores, abs=1e-6)


def test_one_slot_of_content_divides_by_no_zero():
    length_method = make_method("ev", {"ratios": [1], "score": "length_normalised"})
    assert length_method.choose(Sentence(1), {2: reading(1.0, 0.0)}).scores == {2: round(1 / math.log(2), 6)}


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("evv", {}, "Name one of adaptive_ev, cal, daedal, eos_probe, ev, "),
        ("ev", {"ratio": [1]}, "ratios"),
        ("oracle", {"ratios": 1}, "ratios"),
        ("x", {"method": "no_such_module:Class"}, "no_such_module"),
    ],
)
def test_bad_names_and_settings_say_what_would_be_right(method, settings, message):
    with pytest.raises(InputError, match=message):
        make_method(method, settings)


# Mean entropies 1.0, 0.5, 0.75, 0.5 at 6, 8, 9, 11 slots: the valley is at 8, the shorter of a tie.
ENTROPIES = {6: 1.0, 8: 0.5, 9: 0.75, 11: 0.5}
GRID = {"ratios": [0.5, 0.7, 0.8, 1.0]}  # 6, 8, 9 and 11 slots for ten source tokens


def chosen(method, room=None, **settings):
    return search(make_method(method, GRID | settings), 10, entropy=ENTROPIES.__getitem__, room=room)[0]


def test_neighbours_are_two_on_either_side_of_the_valley():
    row = chosen("neighbours")
    assert row["contenders"] == [6, 7, 8, 9, 10]
    assert row.pop("rescoring") is True
    assert {key: value for key, value in row.items() if key != "contenders"} == chosen("ev")
    assert chosen("neighbours", radius=1)["contenders"] == [7, 8, 9]


@pytest.mark.parametrize("method", ["ev", "lr_style", "eos_probe", "neighbours"])
def test_given_lengths_are_the_candidates_of_a_grid_that_has_them(method):
    given = make_method(method, {"lengths": [11, 9, 6, 8]})
    assert search(given, 3, ENTROPIES.__getitem__) == search(make_method(method, GRID), 10, ENTROPIES.__getitem__)


def test_no_neighbour_is_shorter_than_a_slot_and_its_eos():
    choice = make_method("neighbours", {"ratios": [1.0]}).choose(Sentence(2), {3: reading(1.0, 1.0, 0.0)})
    assert list(choice.contenders) == [2, 3, 4, 5]


def test_contenders_without_room_are_left_out_but_the_first_choice_stays():
    assert chosen("neighbours", room=9)["contenders"] == [6, 7, 8, 9]
    assert chosen("neighbours", room=5) == chosen("ev") == chosen("ev", room=5)


@given(st.sampled_from([0.70, 0.75, 0.80, 0.85, 0.90, 1.0, 1.1, 1.2, 1.3, 1.4, 1.8]), st.integers(1, 400))
def test_a_product_in_binary_floating_point(ratio, source):
    binary = candidate_length(ratio, source, exact=False)
    assert binary == max(1, int(source * ratio)) + 1
    assert candidate_length(ratio, source) - binary in (0, 1)


@pytest.mark.parametrize(
    ("name", "given"),
    [("ratio", {"ratios": 0.7}), ("ev", {"ratios": [0.7]}), ("neighbours", {"ratios": [0.7], "radius": 1})],
)
def test_methods_take_the_product_that_their_settings_say(name, given):
    exact, binary, explicit = (make_method(name, given | more) for more in ({}, {"exact": False}, {"exact": True}))
    lengths = [proposed(method, Sentence(90)) for method in (exact, binary, explicit)]
    assert lengths[0] - lengths[1] == 1 and lengths[0] == lengths[2]


def proposed(method, sentence):
    return max(method.propose(sentence, {}), default=None) or method.choose(sentence, {}).length


@given(st.decimals("0.01", "9.99", places=2), st.integers(1, 2000))
def test_it_is_the_floor_of_the_decimal_product(ratio, source):
    floor = int((ratio * source).to_integral_value(ROUND_FLOOR))
    assert candidate_length(float(ratio), source) == max(1, floor) + 1
