"""Passes that take the prompt's keys and values from earlier ones: what is asked of the engine, and what it costs."""

from __future__ import annotations

import dataclasses
import sys

from entropy_valley.decoding.canvas import CachePolicy, ProbeResult, footnote
from entropy_valley.decoding.requests import Denoising, Draft, Probe
from entropy_valley.decoding.runner import Memo
from entropy_valley.translation.pipeline import Inputs, Pipeline

KEY = Memo(None, "", "").key
PROMPT = [5, 9, 12, 7]
MED, SIG = Denoising.named("med", 8, "llada"), Denoising.named("sig_first", 8, "llada")


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
    assert KEY(requests[0][0][0]) == KEY(requests[1][0][0])


def test_the_name_and_the_footnote_of_a_decoder():
    assert (CachePolicy.of({}), CachePolicy().names, footnote("engine r5|med|T8")) == (CachePolicy(), [], None)
    for setting, refresh, name in ((4, 4, "prompt cache 4"), ("never", sys.maxsize, "prompt cache, never renewed")):
        cache = CachePolicy.of({"prompt_cache": setting})
        assert (cache.refresh, cache.names) == (refresh, [name])
    assert footnote("med|prompt cache 4|float32 head").endswith(
        "keys and values are renewed every 4 passes over a sentence."
    )
    assert "are those of the first pass" in footnote("engine r5|prompt cache, never renewed")
