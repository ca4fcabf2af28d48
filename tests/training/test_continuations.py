"""The objective of an autoregressive family, against transformers' own loss of a padded batch."""

import pytest
import torch
import transformers
from tiny_training import continuations_of, spec

from entropy_valley.model.families import STOCK_FIELDS
from entropy_valley.training import sft
from entropy_valley.training.loss import Passes, cross_entropies


@pytest.fixture
def llama3(load):
    return load("llama3")


def padded(pairs, indices, eos_id):
    """A right-padded batch with labels on target and EOS alone, as transformers wants it."""
    width = int(pairs.lengths[indices].max())
    ids, labels = torch.full((len(indices), width), eos_id), torch.full((len(indices), width), -100)
    mask = torch.zeros_like(ids)
    for row, index in enumerate(indices.tolist()):
        start, prompt, length = (int(column[index]) for column in (pairs.starts, pairs.prompts, pairs.lengths))
        tokens = pairs.tokens[start : start + length].long()
        ids[row, :length], mask[row, :length] = tokens, 1
        labels[row, prompt:length] = tokens[prompt:]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def plain_llama(model):
    """A stock causal model with the same weights and none of our attention."""
    config = transformers.LlamaConfig(**{field: getattr(model.config, field) for field in STOCK_FIELDS})
    plain = transformers.LlamaForCausalLM(config)
    plain.load_state_dict(model.state_dict())
    return plain


@pytest.mark.parametrize("passes", [Passes(), Passes(64), Passes(ranks=3)])
def test_loss_and_gradients_are_those_of_transformers(llama3, passes):
    batches = continuations_of(llama3, passes=passes)
    ours, plain = llama3.model.requires_grad_(True), plain_llama(llama3.model)
    for step in range(len(batches.order)):  # the last batch is short
        expected = plain(**padded(batches.pairs, batches.order[step], llama3.eos_id)).loss
        expected.backward()
        loss = 0.0
        for part in filter(len, batches[step]):
            share = cross_entropies(ours, part, llama3.shifted) @ part.weights
            share.backward()
            loss += share.item()
        assert loss == pytest.approx(expected.item(), rel=1e-5)
        for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-5 * float(other.grad.abs().max()))
        ours.zero_grad(), plain.zero_grad()


@pytest.mark.parametrize("normaliser", ["token", "masked", "sequence"])
def test_normalisers(llama3, normaliser):
    batches = continuations_of(llama3, passes=Passes(ranks=3), normaliser=normaliser)
    indices = batches.order[0]
    targets = batches.pairs.lengths[indices] - batches.pairs.prompts[indices]
    each = 1 / (targets * len(indices)) if normaliser == "sequence" else 1 / targets.sum().expand(len(indices))
    weights = torch.cat([part.weights for part in batches[0]])
    torch.testing.assert_close(weights, each.repeat_interleave(targets))


def test_what_belongs_to_masks_does_not_touch_it(llama3, corpus, tmp_path):
    """Not even the pairs that eos_padding would leave no room for."""
    readings = {}, {"weight": "none", "time": "minibatch", "eps": 0.5, "eos_padding": 40}
    jobs = [
        sft.Finetuning(spec("llama3", loss=loss), corpus, *[tmp_path] * 4, checkpoint_every=200) for loss in readings
    ]
    one, other = (sft._batches(job, llama3, sft._pairs(job, llama3), Passes()) for job in jobs)
    for step in range(len(one.order)):
        for mine, yours in zip(one[step], other[step], strict=True):
            assert torch.equal(mine.packed.input_ids, yours.packed.input_ids)
            assert torch.equal(mine.rows, yours.rows) and torch.equal(mine.weights, yours.weights)
