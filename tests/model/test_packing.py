"""Attention of the family's kind inside a sequence, nothing between sequences, no padding."""

import copy
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entropy_valley.experiment.demo.pretraining import new_model
from entropy_valley.model.attention import Rows, pack
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import stock_model

SHAPE = dict(vocabulary=40, width=32, layers=2, heads=4, kv_heads=2, ffn=48, context=64, seed=1)
KINDS = ["a2d_qwen3", "dream", "llada", "llama3"]  # norms of heads, biases, neither; causal
DIFFUSION = sorted(name for name, family in FAMILIES.items() if not family.causal)
SEQUENCES = st.lists(st.lists(st.integers(0, 39), min_size=1, max_size=12), min_size=1, max_size=6)


def wide(name):
    """A random model whose attention is far from flat."""
    model = new_model(name, **SHAPE).eval()
    for parameter in model.parameters():
        parameter.data.mul_(4 if parameter.dim() == 2 else 1)
    return model


MODELS = {name: wide(name) for name in FAMILIES}


def logits(model, sequences, prefixes=()):
    """The logits of each sequence, all run in one pass."""
    with torch.inference_mode():
        packed = pack(sequences, prefixes=prefixes)
        return model.lm_head(model.hidden_states(packed)).split(packed.lengths)


def stock(family, model, sequence, padding, prefix=0):
    """The logits of the stock forward under its own eager attention, with an explicit mask, padded on the right."""
    size = len(sequence) + padding
    mask = torch.zeros(1, 1, size, size)
    mask[..., len(sequence) :] = torch.finfo(torch.float32).min
    mask[..., :prefix, prefix:] = torch.finfo(torch.float32).min
    if family.causal:
        mask[..., torch.ones(size, size, dtype=torch.bool).triu(1)] = torch.finfo(torch.float32).min
    with torch.inference_mode():
        ids = torch.tensor([sequence + [0] * padding])
        return stock_model(family, model)(input_ids=ids, attention_mask=mask).logits[0, : len(sequence)]


@pytest.mark.parametrize("padding", [0, 5])
def test_a_packed_sequence_is_what_the_stock_model_computes_padded_or_not(tiny, family, padding):
    model, sequences = tiny[family.name][0], [[1, 2, 3, 4], [5, 6], [7, 8]]
    for packed, sequence in zip(logits(model, sequences), sequences, strict=True):
        torch.testing.assert_close(packed, stock(family, model, sequence, padding), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", DIFFUSION)
def test_a_prefix_attends_to_itself_alone(tiny, name):
    model, sequences, prefixes = tiny[name][0], [[1, 2, 3, 4, 7], [5, 6], [7, 8], [9]], [3, 0, 1, 0]
    expected = [stock(FAMILIES[name], model, one, 0, first) for one, first in zip(sequences, prefixes, strict=True)]
    packed_logits, expected = torch.cat(logits(model, sequences, prefixes)), torch.cat(expected)
    torch.testing.assert_close(packed_logits, expected, atol=1e-5, rtol=0)
    places, counts = torch.tensor([3, 4, 6, 8]), (2, 1, 1, 0)
    with torch.inference_mode():  # the rows alone, their queries alone in the last layer
        states = model.hidden_states(pack(sequences, prefixes=prefixes), Rows(places, counts))
        torch.testing.assert_close(model.lm_head(states), expected[places], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=20)
@given(sequences=SEQUENCES, shuffler=st.randoms(use_true_random=False))
def test_company_and_order_change_nothing(name, sequences, shuffler: random.Random):
    """To 1e-5 and not to the bit: kernels of other sizes round otherwise (by less than 1e-6 in 1,000 such draws)."""
    order = list(range(len(sequences)))
    shuffler.shuffle(order)
    together = logits(MODELS[name], [sequences[place] for place in order])
    for place, packed in zip(order, together, strict=True):
        torch.testing.assert_close(packed, logits(MODELS[name], [sequences[place]])[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["dream", "llama3"])
def test_gradients_are_those_of_the_sequences_apart(name):
    model, sequences = copy.deepcopy(MODELS[name]), [[1, 2, 3, 4], [5, 6, 7], [8, 9, 10]]

    def gradient(batches, prefix):
        model.zero_grad()
        for batch in batches:
            model.hidden_states(pack(batch, prefixes=[prefix] * len(batch))).square().sum().backward()
        return model.model.layers[0].self_attn.q_proj.weight.grad.clone()

    for prefix in (0, 2) if name in DIFFUSION else (0,):
        apart = gradient([[one] for one in sequences], prefix)
        torch.testing.assert_close(gradient([sequences], prefix), apart, atol=1e-4, rtol=1e-5)


# --- The last layer gives the rows that are read as if it had computed all of them.


def some_rows(draw, sequences):
    """Any rows of any sequence, none of some."""
    chosen = [sorted(draw(st.sets(st.integers(0, len(one) - 1)))) for one in sequences]
    starts = [sum(map(len, sequences[:place])) for place in range(len(sequences))]
    places = [start + row for start, rows in zip(starts, chosen, strict=True) for row in rows]
    return Rows(torch.tensor(places, dtype=torch.long), tuple(map(len, chosen)))


@pytest.mark.parametrize("name", KINDS)
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
