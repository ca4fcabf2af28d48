"""The selectors that have several canvases decoded: which ones, worked out by hand."""

from __future__ import annotations

import pytest
from readings import reading, search

from entropy_valley.lengths import Sentence, make_method

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


def test_no_neighbour_is_shorter_than_a_slot_and_its_eos():
    choice = make_method("neighbours", {"ratios": [1.0]}).choose(Sentence(2), {3: reading(1.0, 1.0, 0.0)})
    assert list(choice.contenders) == [2, 3, 4, 5]


@pytest.mark.parametrize(("k", "lengths"), [(2, [8, 11]), (3, [8, 9, 11]), (9, [6, 8, 9, 11])])
def test_the_deepest_valleys_are_decoded(k, lengths):
    row = chosen("ev_rerank", k=k)
    assert (row["length"], row["contenders"], row["calls"]) == (8, lengths, 4)


def test_one_valley_is_ev():
    assert chosen("ev_rerank", k=1) == chosen("ev")


def test_contenders_without_room_are_left_out_but_the_first_choice_stays():
    assert chosen("neighbours", room=9)["contenders"] == [6, 7, 8, 9]
    assert chosen("neighbours", room=5) == chosen("ev") == chosen("ev", room=5)
