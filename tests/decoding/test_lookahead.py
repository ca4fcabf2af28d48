"""Guessed states in passes that have room: other passes, and the same results and counts."""

import dataclasses
import itertools

import pytest
import torch
from bench import canvas_of

from entropy_valley.decoding.canvas import Queue, Reuse
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo import grammar
from entropy_valley.lengths import make_method
from entropy_valley.model.decoder import Decoder
from entropy_valley.model.load import load_backbone
from entropy_valley.model.prompt import PREFIX, Prompt
from entropy_valley.shipped import GRAMMAR
from entropy_valley.translation.translator import Translator


def decode(backbone, canvases, lookahead, **options):
    engine = Engine(backbone, lookahead=lookahead, **options)
    return dict(engine.run(Queue(enumerate(canvases), engine.prompts.are_shared), make_denoiser("med"))), engine.ledger


@pytest.mark.parametrize("changes", [{}, {"attention": PREFIX}], ids=["both ways", "prefix"])
@pytest.mark.parametrize("options", [{}, {"fill": 200}, {"reveals_masks": True}], ids=str)
def test_right_and_wrong_guesses_are_counted_apart(backbone, changes, options):
    """One canvas: each right guess is a pass less, and each wrong one costs what a pass over it would."""
    model, seen = dataclasses.replace(backbone, **changes), set()
    for first in range(4, 12):
        one = canvas_of((first, 7, 9, 11), 12, 8)
        (plain, without), (results, ledger) = (decode(model, [one], ahead, **options) for ahead in (0, 2))
        assert results == plain and ledger["passes"] == without["passes"] - ledger["foreseen"]
        assert (ledger["tokens"], ledger["rows"]) == (without["tokens"], without["rows"])
        each = one.length + int(model.shifted) if changes else one.cost
        assert ledger["unused"] % each == 0 and ledger["unused"] <= 2 * each * ledger["passes"]
        assert not (without["unused"] or without["foreseen"])
        seen |= {("right", bool(ledger["foreseen"])), ("wrong", bool(ledger["unused"]))}
    assert {("right", True), ("wrong", True)} <= seen


def test_a_prompt_that_is_renewed_has_no_lookahead(llada):
    results, ledger = decode(llada, [canvas_of((3, 4, 5), 9, 9, reuse=Reuse(2))], 4)
    assert ledger["passes"] == results[0].passes and not (ledger["foreseen"] or ledger["unused"])


def test_a_padded_pass_without_memory_ends_with_an_error(backbone, monkeypatch):
    """Where prompts are kept, one canvas is tried once, though guesses are beside it."""
    tried = []

    hidden_states = Decoder.hidden_states

    def scarce(model, packed, *more):
        tried.append(len(packed.lengths))
        if len(tried) > 1:
            assert len(tried) < 9
            raise torch.OutOfMemoryError("no memory for a second pass")
        return hidden_states(model, packed, *more)

    monkeypatch.setattr(Decoder, "hidden_states", scarce)
    with pytest.raises(InputError, match="no memory for a pass padded to 200 tokens"):
        decode(dataclasses.replace(backbone, attention=PREFIX), [canvas_of((3, 4, 5), 9, 9)], 2, fill=200)
    assert len(tried) == 2 and tried[1] > 1


def test_one_sentence_takes_half_the_passes_in_turn():
    """The model of the demo, EV's probes included: a count, which no machine's speed moves."""
    backbone = load_backbone(GRAMMAR.checkpoint, "llada", adapter=GRAMMAR.adapter("en-de"))
    prompt, method = Prompt("German: {src}\n", backbone.tokenizer), make_method("ev", {"ratios": [0.83, 1, 1.17]})
    sources = [words.en for words in itertools.islice(grammar.stream(5), 20)]
    texts, passes, tokens = [], [], []
    for engine in (Engine(backbone, lookahead=0), Engine(backbone)):
        translator = Translator(backbone, prompt, method, engine=engine)
        texts.append([translator.translate([source])[0].text for source in sources])
        passes.append(engine.ledger["passes"])
        tokens.append(engine.ledger["tokens"] + engine.ledger["unused"])
    assert texts[0] == texts[1] and passes[0] >= 2 * passes[1]
    assert tokens[1] < 1.4 * tokens[0]
