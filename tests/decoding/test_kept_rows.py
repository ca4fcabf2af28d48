"""Places of a pool: none belongs to two, and what is in them outlives growth and shrinking."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entropy_valley.decoding.prompts import Pool

STEPS = st.lists(st.tuples(st.sampled_from(("take", "keep", "shrink")), st.integers(0, 9)), max_size=25)


@settings(max_examples=30)
@given(STEPS)
def test_what_is_kept_is_found_again(steps):
    pool, held, written = Pool(), [], 0
    for action, number in steps:
        if action == "take":
            places = pool.take(number)
            values = torch.arange(written, written := written + number, dtype=torch.float32)[:, None, None]
            for tensor in pool.layer(0, values):
                tensor[torch.from_numpy(places)] = values
            held.append((places, values))
        elif action == "keep":
            held = held[number % 3 :]
            pool.keep([places for places, _ in held])
        else:
            pool.shrink()
        taken = np.concatenate([np.empty(0, int), *(places for places, _ in held)])
        assert len(set(taken)) == len(taken) == pool.used
        for places, values in held:
            assert all((tensor[torch.from_numpy(places)] == values).all() for tensor in pool.layer(0, values))
    pool.keep([])
    pool.shrink()
    assert pool.size == 0


def test_an_empty_pool_holds_no_tensor_of_the_pass():
    assert all(tensor.untyped_storage().nbytes() == 0 for tensor in Pool().layer(0, torch.ones(9, 2, 4)))
