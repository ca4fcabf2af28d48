"""Gradients of the adapters, however the forward pass is run."""

import pytest
import torch
from tiny_training import batches_of, canvases_of
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import stock_model
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.training.adapter import attach_lora, trainable
from entropy_valley.training.loss import Passes, cross_entropies
from entropy_valley.training.settings import Lora


def adapted(backbone, dropout=0.0):
    """A model whose adapters change something already."""
    settings = Lora(rank=2, alpha=4, dropout=dropout)
    model = attach_lora(backbone.model, backbone.family, settings, seed=1).train()
    for parameter in trainable(model):
        torch.nn.init.normal_(parameter, std=0.1, generator=torch.Generator().manual_seed(parameter.numel()))
    return model


def gradients(model, loss):
    return [loss.item(), *torch.autograd.grad(loss, trainable(model))]


def packed(model, batches, shifted, step):
    """Loss and gradients of a step, summed over its micro-batches."""
    torch.manual_seed(7)
    parts = [gradients(model, cross_entropies(model, part, shifted) @ part.weights) for part in batches[step]]
    return [sum(column) for column in zip(*parts, strict=True)]


def padded(model, batch, shifted, prefixes=()):
    """The same by stock attention over a padded batch with a mask, the logits of all rows, one after the other."""
    lengths = list(batch.packed.lengths)
    ids = pad_sequence(batch.packed.input_ids[0].split(lengths), batch_first=True)
    real = torch.arange(ids.shape[1]) < torch.tensor(lengths)[:, None]
    never = torch.finfo(torch.float32).min
    mask = torch.zeros(len(lengths), 1, ids.shape[1], ids.shape[1]).masked_fill(~real[:, None, None], never)
    for one, prefix in zip(mask, prefixes, strict=False):
        one[:, :prefix, prefix:] = never
    name = "dream" if model.config.qkv_bias else "llada"
    logits = stock_model(FAMILIES[name], model)(input_ids=ids, attention_mask=mask).logits
    losses = cross_entropy(logits[real][batch.rows - int(shifted)], batch.labels, reduction="none")
    return gradients(model, losses @ batch.weights)


def assert_equal(ours, theirs, tolerance):
    for one, other in zip(ours, theirs, strict=True):
        one, other = torch.as_tensor(one), torch.as_tensor(other)
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance * float(other.abs().max()))


@pytest.mark.cluster  # half a minute: forward and backward passes go through a C++ compiler
@pytest.mark.parametrize("recompute", [False, True])
def test_compiled_layers_change_last_bits_alone(load, recompute):
    """One graph for passes of all sizes: the real compiler would refuse to make more than eight."""
    backbone = load("dream")
    model, cut = adapted(backbone), canvases_of(backbone, passes=Passes(90))
    plain = [packed(model, cut, backbone.shifted, step) for step in range(3)]
    model.compiles, model.recompute = True, recompute
    for step, expected in enumerate(plain):
        assert_equal(packed(model, cut, backbone.shifted, step), expected, 1e-4)


@pytest.mark.parametrize("family", ["llada", "dream"])
@pytest.mark.parametrize("step", range(3))  # the last batch is short
def test_packed_to_a_budget_is_padded(load, family, step):
    backbone = load(family)
    model = adapted(backbone)
    (whole,) = canvases_of(backbone)[step]
    cut = canvases_of(backbone, passes=Passes(90))
    assert len(cut[step]) > 1 or len(whole) == 2
    assert_equal(packed(model, cut, backbone.shifted, step), padded(model, whole, backbone.shifted), 1e-5)


@pytest.mark.parametrize("reading", [{}, {"padding_read": True}, {"eos_padding": 3}], ids=str)
@pytest.mark.parametrize("family", ["llada", "dream"])
def test_the_prompt_is_a_prefix(load, family, reading):
    """Its rows attend to one another alone. The row that slot 0 is read from, and all padding, attend to everything."""
    backbone = load(family, attention="prefix")
    model, cut = adapted(backbone), canvases_of(backbone, passes=Passes(90), **reading)
    (whole,) = canvases_of(backbone, **reading)[0]
    prefixes = (cut.pairs.prompts - int(backbone.shifted))[cut.order[0]].tolist()
    assert len(cut[0]) > 1
    plain = padded(model, whole, backbone.shifted, prefixes)
    assert_equal(packed(model, cut, backbone.shifted, 0), plain, 1e-5)
    assert plain[0] != pytest.approx(padded(model, whole, backbone.shifted)[0], rel=1e-3)


@pytest.mark.parametrize(("family", "attention"), [("llada", BOTH_WAYS), ("dream", PREFIX), ("llama3", BOTH_WAYS)])
def test_activation_checkpointing_changes_nothing(load, family, attention):
    """Not even where dropout is drawn twice."""
    backbone = load(family, attention=attention)
    model, batches = adapted(backbone, dropout=0.3), batches_of(backbone, passes=Passes(90))
    plain = packed(model, batches, backbone.shifted, 0)
    calls = []
    backbone.model.model.layers[0].self_attn.q_proj.register_forward_pre_hook(lambda *_: calls.append(1))
    backbone.model.recompute = True
    spared = packed(model, batches, backbone.shifted, 0)
    assert len(calls) == 2 * len(batches[0])  # each layer once more on the way back
    assert_equal(spared, plain, 0)
