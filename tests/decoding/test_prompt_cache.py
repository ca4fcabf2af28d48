"""Passes that take the prompt's keys and values from earlier ones: what is asked of the engine, and what it costs."""

from __future__ import annotations

import dataclasses
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley import files
from entropy_valley.decoding.orders import Denoising
from entropy_valley.decoding.prompts import CachePolicy, Reuse, footnote
from entropy_valley.decoding.requests import Decoded, Draft, Probe, ProbeResult
from entropy_valley.lengths import Sentence, make_method
from entropy_valley.revisions import DECODING
from entropy_valley.translation.job import Inputs, Pipeline
from entropy_valley.translation.translations import PromptCosts, sentence_costs

PROMPT = [5, 9, 12, 7]
MED, SIG = Denoising.named("med", 8, "llada"), Denoising.named("sig_first", 8, "llada")
DAEDAL = {"ratios": 0.5, "eos_window": 1}


def pipeline(refresh):
    return Pipeline(
        None, Inputs("test", ["s0", "s1"], [PROMPT, PROMPT[1:]], [5], 128, ["ein", "zwei"]), CachePolicy(refresh)
    )


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


@given(st.lists(st.integers(1, 300), min_size=1, max_size=40, unique=True), st.integers(1, 45))
def test_a_probe_takes_the_prompt_of_the_last_whole_one(lengths, refresh):
    number = len(lengths) - 1
    source = lengths[number - number % refresh]
    assert CachePolicy(refresh).of_probe(lengths).beside == (None if source == lengths[-1] else source)
    assert CachePolicy(1).of_probe(lengths) == CachePolicy().of_probe(lengths) == Reuse()
    assert CachePolicy(sys.maxsize).of_probe(lengths).beside == (lengths[0] if number else None)


def test_probes_are_numbered_in_the_order_in_which_a_method_asks_for_them():
    """Of EV they come at once, of DAEDAL one after the other, and of drafts all are exact."""
    ev, far = make_method("ev", {"ratios": [0.6, 0.8, 1.0, 1.2, 1.4]}), Sentence(10, room=60)
    ((probes,), row) = asked(pipeline(2).choosing(ev, 0, far, {}))
    assert [(one.length, one.reuse.beside) for one in probes] == [(7, None), (9, 7), (11, None), (13, 11), (15, None)]
    ((exact,), plain) = asked(pipeline(None).choosing(ev, 0, far, {}))
    assert {one.reuse.beside for one in exact} == {None} and row == plain | {"cached": 2}
    rounds, row = asked(pipeline(3).choosing(make_method("daedal", DAEDAL), 0, far, {}))
    lengths = [one.length for (one,) in rounds]
    expected = [None if number % 3 == 0 else lengths[number // 3 * 3] for number in range(len(lengths))]
    assert len(lengths) > 4 and [one.reuse.beside for (one,) in rounds] == expected
    assert row["cached"] == sum(length is not None for length in expected)
    _, row = asked(pipeline(2).choosing(make_method("partial_unmask", {}), 0, far, {}))
    assert "cached" not in row
    _, row = asked(pipeline(None).choosing(ev, 0, dataclasses.replace(far, predicted={9: -0.1}), {}))
    assert row == plain | {"calls": plain["calls"] + 1, "apart": 1}  # a length head's pass is no probe


def test_a_canvas_knows_no_reading_and_no_more_of_the_key_than_it_has_passes():
    row, readings = {"length": 5, "candidates": [5], "scores": [1.0]}, {5: reading(5)}
    refreshes = {}
    for refresh in (None, 2, 5, 6, sys.maxsize):
        (((request,),), _) = asked(pipeline(refresh).denoising(0, row, MED, readings))
        refreshes[refresh] = request.canvas.reuse.refresh
        assert (request.canvas.start is None) == bool(refresh)
    assert refreshes == {None: None, 2: 2, 5: 5, 6: 5, sys.maxsize: 5}
    (((request,),), _) = asked(pipeline(2).denoising(0, {**row, "length": 1}, MED, {}))
    assert request.canvas.reuse.refresh is None  # its one pass is exact
    filling = dataclasses.replace(Denoising.named("med", 1, "llada"), mask_token=True)
    (((request,),), _) = asked(pipeline(4).denoising(0, row, filling, {}))
    assert request.canvas.reuse.refresh == 2  # a mask may be left for a second one


def test_a_sig_is_of_exact_readings():
    row, approximate = {"length": 5, "candidates": [5], "scores": [1.0]}, {5: reading(5)}
    requests, _ = asked(pipeline(4).denoising(0, row, SIG, approximate))
    assert [one.reuse.beside for one in requests[0]] == [None, None]
    assert requests[1][0].canvas.start is None and requests[1][0].canvas.sigs


def test_variable_length_decoders_are_exact():
    row, daedal = {"length": 5, "candidates": [5], "scores": []}, Denoising.named("daedal", 8, "llada", {})
    requests = [asked(pipeline(refresh).denoising(0, row, daedal, {}))[0] for refresh in (None, 4)]
    assert requests[0][0][0].key("", "") == requests[1][0][0].key("", "")


def test_what_is_approximate_has_a_key_of_its_own():
    probes = {Probe(PROMPT, 6, reuse=Reuse(beside=length)).key("", "") for length in (None, 4, 5)}
    assert len(probes) == 3 and files.digest(["probe", DECODING, "", "", PROMPT, 6]) in probes
    cases = [(1, 4), (6, None), (6, 2), (6, 6), (6, sys.maxsize)]
    requests = [MED.request(PROMPT, None, length, 99, cache=CachePolicy(refresh)) for length, refresh in cases]
    keys = [one.key("", "") for one in requests]
    assert len(set(keys)) == 4 and keys[:2] == [MED.request(PROMPT, None, n, 99).key("", "") for n in (1, 6)]
    assert keys[-2] == keys[-1]


def test_the_name_and_the_footnote_of_a_decoder():
    assert (CachePolicy.of({}), CachePolicy().names, footnote("engine r5|med|T8")) == (CachePolicy(), [], None)
    for setting, refresh, name in ((4, 4, "prompt cache 4"), ("never", sys.maxsize, "prompt cache, never renewed")):
        cache = CachePolicy.of({"prompt_cache": setting})
        assert (cache.refresh, cache.names) == (refresh, [name])
    assert footnote("med|prompt cache 4|float32 head").endswith(
        "keys and values are renewed every 4 passes over a sentence."
    )
    assert "are those of the first pass" in footnote("engine r5|prompt cache, never renewed")


@pytest.mark.parametrize("shifted", [False, True])
def test_the_tokens_of_a_sentence(shifted):
    """Three probes and five steps over five slots, written out."""
    canvas = {"calls": 3, "slots": 15, "candidates": [4, 5, 6], "scores": [3, 1, 2], "length": 5}
    decoded = {5: Decoded([1] * 5, 5, -1.0, 5)}
    p, kept = 20, 20 - shifted

    def tokens(canvas=canvas, order=MED, **how):
        return sentence_costs(canvas, PromptCosts(p, 8, shifted, **how), decoded, order)["run_tokens"]

    assert tokens() == 7 * p + 15 + 4 * 5
    assert tokens({**canvas, "cached": 1}, cache=CachePolicy(2)) == (2 + 3) * p + (1 + 2) * (p - kept) + 15 + 5 * 5
    assert tokens({**canvas, "cached": 2}, cache=CachePolicy(sys.maxsize)) == 2 * p + 6 * (p - kept) + 15 + 5 * 5
    assert tokens(once=True) == p + 6 * (p - kept) + 15 + 4 * 5
    assert tokens(order=SIG, once=True) == tokens(once=True) + 8 + 5
    steps = 2 * p + 3 * (p - kept) + 5 * 5  # of a refresh of 3
    assert tokens({**canvas, "calls": 0, "slots": 0}, SIG, cache=CachePolicy(3)) == steps + (p + 5) + (8 + 5)
    head = {**canvas, "calls": 1, "slots": 0, "scores": [1]}
    assert tokens(head, once=True) == p + p + 4 * (p - kept) + 5 * 5  # a length head's pass stands apart
    both = {**canvas, "calls": 4, "apart": 1}  # of a method that probes too
    assert tokens(both, once=True) == p + tokens(once=True)
    assert tokens(both) == p + tokens()
