from __future__ import annotations

import pytest

from entropy_valley.decoding.inputs import Inputs
from entropy_valley.errors import InputError

INPUTS = Inputs("test.jsonl", ["s6", "s7", "s8"], [[1] * 30, [1] * 39, [1] * 40], [1], 40)


def test_a_sentence_beyond_the_context_is_named_with_its_numbers():
    INPUTS.check(0, 10)
    message = r"test\.jsonl: sentence 's6': prompt 30 \+ canvas 11 = 41 tokens.*context is 40"
    with pytest.raises(InputError, match=message):
        INPUTS.check(0, 11)
    assert INPUTS.fits(0, 10) and not INPUTS.fits(0, 11)


def test_a_prompt_that_fills_the_context_is_named_with_its_numbers():
    assert INPUTS.room(1) == 1
    with pytest.raises(InputError, match=r"test\.jsonl: sentence 's8': prompt of 40 tokens.*context is 40"):
        INPUTS.room(2)


def test_what_the_context_leaves_is_at_least_the_shortest_canvas():
    assert INPUTS.rooms == [10, 2, 2]
