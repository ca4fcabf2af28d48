"""The last layer gives the rows that are read as if it had computed all of them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_packing import MODELS, SEQUENCES

from entropy_valley.model.attention import Rows, pack
from entropy_valley.model.families import FAMILIES

DIFFUSION = sorted(name for name, family in FAMILIES.items() if not family.causal)


def some_rows(draw, sequences):
    """Any rows of any sequence, none of some."""
    chosen = [sorted(draw(st.sets(st.integers(0, len(one) - 1)))) for one in sequences]
    starts = [sum(map(len, sequences[:place])) for place in range(len(sequences))]
    places = [start + row for start, rows in zip(starts, chosen, strict=True) for row in rows]
    return Rows(torch.tensor(places, dtype=torch.long), tuple(map(len, chosen)))


@pytest.mark.parametrize("name", sorted(FAMILIES))
@settings(max_examples=30)
@given(sequences=SEQUENCES, data=st.data())
def test_read_rows_are_those_of_the_whole_pass(name, sequences, data):
    rows, packed = some_rows(data.draw, sequences), pack(sequences)
    if not len(rows.places):
        return
    with torch.inference_mode():
        whole = MODELS[name].hidden_states(packed)
        read = MODELS[name].hidden_states(packed, rows)
        uncounted = MODELS[name].hidden_states(packed, Rows(rows.places))
    torch.testing.assert_close(read, whole[rows.places], atol=1e-5, rtol=0)
    torch.testing.assert_close(uncounted, read, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("counts", "queries"), [((3, 2), 5), (None, 8)])
@pytest.mark.parametrize("name", DIFFUSION)
def test_other_rows_are_spared(name, counts, queries):
    """All but keys and values of the last layer is computed for the read rows alone; uncounted ones attend as well."""
    seen, last = {}, MODELS[name].model.layers[-1]
    parts = {"mlp": last.mlp, "q": last.self_attn.q_proj, "o": last.self_attn.o_proj, "k": last.self_attn.k_proj}
    hooks = [
        part.register_forward_pre_hook(lambda _, inputs, key=key: seen.update({key: len(inputs[0])}))
        for key, part in parts.items()
    ]
    MODELS[name].hidden_states(pack([[1, 2, 3, 4, 5], [6, 7, 8]]), Rows(torch.tensor([0, 1, 4, 6, 7]), counts))
    for hook in hooks:
        hook.remove()
    assert seen == {"mlp": 5, "q": queries, "o": 5, "k": 8}
