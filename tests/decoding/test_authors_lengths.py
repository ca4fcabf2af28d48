"""The authors' other length methods, against plain loops over whole forward passes."""

import dataclasses
import math
from collections import Counter

import pytest
import torch
from bench import canvases, translated, without_store
from tiny_checkpoints import SOURCES

from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Ledger
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.requests import Denoising, Probe, Runner
from entropy_valley.lengths import Sentence, make_method
from entropy_valley.model.prompt import Prompt
from entropy_valley.translation.sentences import Sentences

RATIOS = [0.6, 0.75, 0.9, 1.0, 1.2]
SIZES = [1, 2, 3, 4, 6, 9, 14]


@pytest.fixture(scope="module")
def inputs(llada):
    rows = [{"id": source, "source": source} for source in SOURCES[: len(SIZES)]]
    return Sentences("test", rows, Prompt("Say: {src}\nIn German: ", llada.tokenizer), llada.context)


def chosen(llada, inputs, name, **settings):
    method = make_method(name, settings)
    return canvases(without_store(Engine(llada)), inputs, method, [Sentence(size) for size in SIZES])


@torch.inference_mode()
def plain_probe(backbone, prompt, size):
    """The candidate, the shortest first, at whose end p(EOS) is largest."""
    best, best_length = -1.0, None
    for length in sorted({max(1, math.floor(round(size * ratio, 9))) + 1 for ratio in RATIOS}):
        logits = reference.slot_logits(backbone, prompt, [backbone.mask_id] * length)
        chance = logits[-1].softmax(-1)[backbone.eos_id].item()
        if chance > best:
            best, best_length = chance, length
    return best_length


@torch.inference_mode()
def plain_draft(backbone, prompt, size, steps=4):
    """Slots up to the first EOS of a long canvas after ``steps`` steps of one more; revealed ones as revealed."""
    length, mask = max(1, 3 * size // 2) + 1, backbone.mask_id
    tokens = [mask] * length
    for step in range(steps):
        logits = reference.slot_logits(backbone, prompt, tokens)
        entropy = torch.special.entr(logits.softmax(-1)).sum(-1).tolist()
        hidden = sorted(
            (slot for slot in range(length) if tokens[slot] == mask), key=lambda slot: (entropy[slot], slot)
        )
        for slot in hidden[: length * (step + 1) // (steps + 1) - length * step // (steps + 1)]:
            tokens[slot] = int(logits[slot].argmax())
    last = reference.slot_logits(backbone, prompt, tokens).argmax(-1).tolist()
    seen = [last[slot] if token == mask else token for slot, token in enumerate(tokens)]
    return seen.index(backbone.eos_id) + 1 if backbone.eos_id in seen else length


def test_eos_probe_is_the_plain_loop(llada, inputs):
    rows = chosen(llada, inputs, "eos_probe", ratios=RATIOS)
    expected = [plain_probe(llada, prompt, size) for prompt, size in zip(inputs.prompts, SIZES, strict=True)]
    assert [row["length"] for row in rows] == expected
    assert expected != [row["length"] for row in chosen(llada, inputs, "ev", ratios=RATIOS)]
    assert all(row["calls"] == len(row["candidates"]) and row["slots"] == sum(row["candidates"]) for row in rows)


@pytest.fixture(scope="module")
def ending(llada, inputs):
    """The model with a token as its EOS that it often expects: canvases of random weights do not end else."""
    (reading,) = Runner(lambda: Engine(llada), Ledger()).answers([Probe(inputs.prompts[-1], 22)])
    return dataclasses.replace(llada, eos_id=Counter(reading.tokens[4:]).most_common(1)[0][0])


@pytest.mark.parametrize("steps", [1, 4])
def test_partial_unmask_is_the_plain_loop(ending, inputs, steps):
    llada, rows = ending, chosen(ending, inputs, "partial_unmask", steps=steps)
    expected = [plain_draft(llada, prompt, size, steps) for prompt, size in zip(inputs.prompts, SIZES, strict=True)]
    assert [row["length"] for row in rows] == expected
    longest = [max(1, 3 * size // 2) + 1 for size in SIZES]
    assert expected != longest and min(expected) < max(expected)
    assert [(row["calls"], row["slots"]) for row in rows] == [(steps + 1, (steps + 1) * size) for size in longest]


def test_a_draft_is_no_probe(llada, inputs):
    """A canvas of the draft's length is decoded from its own first pass, not from the draft's last one."""
    method, med = make_method("partial_unmask", {}), Denoising.named("med", 4, "llada")
    done = dict(translated(without_store(Engine(llada)), inputs, method, [Sentence(size) for size in SIZES], med))
    for place, prompt in enumerate(inputs.prompts):
        (row, decoded) = done[place]
        tokens, text = reference.decode(llada, prompt, row["length"], 4)
        result = decoded[row["length"]]
        assert result.tokens[: result.text] == text == tokens[: result.text]
