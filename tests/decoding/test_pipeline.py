"""One way to decode: with and without a store, whatever is shared, each sentence is the plain reference's."""

import sys
from dataclasses import replace

import pytest
import reference_variants
from bench import canvases, denoised, in_prompts, translated, without_store
from tiny_checkpoints import SOURCES

from entropy_valley.decoding.canvas import CachePolicy, Ledger, ProbeResult, footnote
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.requests import Denoising, Draft, Memo, Probe, Runner
from entropy_valley.lengths import Sentence, make_method
from entropy_valley.model.prompt import Prompt
from entropy_valley.store import Store
from entropy_valley.translation.sentences import Sentences

EV = {"ratios": [0.6, 0.8, 1.0]}
MED = Denoising.named("med", 4, "llada")


@pytest.fixture(scope="module")
def inputs(llada):
    rows = [{"id": source, "source": source} for source in SOURCES[::4]]
    return Sentences("test", rows, Prompt("Say: {src}\nIn German: ", llada.tokenizer), llada.context)


@pytest.fixture(scope="module")
def sentences(inputs):
    return [Sentence(3 + place) for place in range(len(inputs.prompts))]


def stored(engine, folder):
    return Runner(engine, Ledger(), Memo(Store(folder), "checkpoint", "numerics"))


def translations(runner, inputs, sentences):
    done = dict(translated(runner, inputs, make_method("ev", EV), sentences, MED))
    return [done[place] for place in range(len(sentences))]


@pytest.mark.parametrize("refresh", [2, sys.maxsize])
def test_with_a_prompt_cache_it_is_the_plain_approximation(llada, inputs, sentences, tmp_path, refresh):
    """Together, in two halves, and from the store."""
    cached = replace(inputs, cache=CachePolicy(refresh))
    whole = translations(without_store(Engine(llada)), cached, sentences)
    halves = stored(lambda: Engine(llada, budget=200), tmp_path)
    rows = canvases(halves, cached, make_method("ev", EV), sentences)
    assert list(zip(rows, denoised(halves, cached, rows, MED), strict=True)) == whole
    assert translations(stored(lambda: pytest.fail("the model was loaded"), tmp_path), cached, sentences) == whole
    assert whole != translations(without_store(Engine(llada)), inputs, sentences)
    for prompt, (row, decoded) in zip(inputs.prompts, whole, strict=True):
        lengths = row["candidates"]
        beside = [lengths[number // refresh * refresh] for number in range(len(lengths))]
        means = [reference_variants.mean_entropy(llada, prompt, *pair) for pair in zip(lengths, beside, strict=True)]
        assert row["scores"] == pytest.approx(means, rel=1e-4)
        assert row["length"] == lengths[means.index(min(means))]
        (one,) = decoded.values()
        text = reference_variants.decode_cached(llada, prompt, row["length"], 4, refresh)[1]
        assert one.tokens[: one.text] == text


@pytest.mark.parametrize("refresh", [2, sys.maxsize])
def test_probes_one_after_the_other_take_the_prompt_of_the_first(llada, inputs, sentences, refresh):
    """A length that is probed later needs no second pass over the one whose prompt it takes."""
    engine = Engine(llada)
    method = make_method("daedal", {"ratios": 0.5, "eos_window": 1})
    cached = replace(inputs, cache=CachePolicy(refresh))
    rows = canvases(without_store(engine), cached, method, [replace(one, room=30) for one in sentences])
    whole = [row["calls"] - row.get("cached", 0) for row in rows]
    prompts = sum(count * len(prompt) for count, prompt in zip(whole, inputs.prompts, strict=True))
    assert engine.ledger["tokens"] == prompts + sum(row["slots"] for row in rows)
    assert max(row["calls"] for row in rows) > 3


def test_a_sentence_waits_for_no_other(llada, inputs, sentences):
    """The first translations are there before the last probes are read."""
    engine, probes = Engine(llada, budget=60), Engine(llada, budget=60)
    method = make_method("ev", EV)
    passes = [engine.ledger["passes"] for _ in translated(without_store(engine), inputs, method, sentences, MED)]
    canvases(without_store(probes), inputs, method, sentences)
    assert passes[0] < probes.ledger["passes"] < passes[-1]


# --- Passes that take the prompt's keys and values from earlier ones: what is asked of the engine, and what it costs.

KEY = Memo(None, "", "").key
PROMPT = [5, 9, 12, 7]
SIG = Denoising.named("sig_first", 8, "llada")


def pipeline(refresh):
    cache = refresh and CachePolicy(refresh)
    return in_prompts([PROMPT, PROMPT[1:]], 128, ["ein", "zwei"], [5], cache=cache)


def reading(length):
    return ProbeResult(*([number] * length for number in (1, 0.5, -2.0, -9.0)))


def asked(work):
    """The requests that a piece of work makes, round by round, and what it returns."""
    requests, answers = [], None
    try:
        while True:
            requests.append(work.send(answers))
            answers = [reading(one.length) if isinstance(one, (Probe, Draft)) else None for one in requests[-1]]
    except StopIteration as done:
        return requests, done.value


def test_a_sig_is_of_exact_readings():
    row, approximate = {"length": 5, "candidates": [5], "scores": [1.0]}, {5: reading(5)}
    requests, _ = asked(pipeline(4).denoising(0, row, SIG, approximate))
    assert [one.reuse.beside for one in requests[0]] == [None, None]
    assert requests[1][0].canvas.start is None and requests[1][0].canvas.sigs


def test_variable_length_decoders_are_exact():
    row, daedal = {"length": 5, "candidates": [5], "scores": []}, Denoising.named("daedal", 8, "llada", {})
    requests = [asked(pipeline(refresh).denoising(0, row, daedal, {}))[0] for refresh in (None, 4)]
    assert KEY(requests[0][0][0]) == KEY(requests[1][0][0])


def test_the_name_and_the_footnote_of_a_decoder():
    assert (CachePolicy.of({}), footnote("engine r5|med|T8")) == (None, None)
    for setting, refresh, name in ((4, 4, "prompt cache 4"), ("never", sys.maxsize, "prompt cache, never renewed")):
        cache = CachePolicy.of({"prompt_cache": setting})
        assert (cache.refresh, cache.name) == (refresh, name)
    assert footnote("med|prompt cache 4|float32 head").endswith(
        "keys and values are renewed every 4 passes over a sentence."
    )
    assert "are those of the first pass" in footnote("engine r5|prompt cache, never renewed")
