"""Hand-made probe tables: all-mask canvases that say what a test wants them to say."""

import functools
import itertools
import math

from entropy_valley.decoding.canvas import ProbeResult
from entropy_valley.lengths import Sentence
from entropy_valley.lengths.base import choosing
from entropy_valley.lengths.statistics import LengthLine, LengthStatistics

# The line 2 + x/2 with a variance of x/4; no length bias.
LINE = LengthLine(2.0, 0.5, 0.25)
STATISTICS = LengthStatistics(LINE, (0.0, 0.0, 0.0, 0.0, 1.0))

# What each of our selectors is built with.
SETTINGS = {
    "oracle": {},
    "ratio": {"ratios": 1.0},
    "fixed": {"slots": 9},
    "ev": {"ratios": [0.5, 1.0]},
    "adaptive_ev": {"ratios": [0.5, 1.0]},
    "smartcrop_style": {"ratios": [0.5, 1.0]},
    "lr_style": {"ratios": [0.5, 1.0]},
    "cal": {"ratios": 1.0},
    "ev_line": {},
    "ev_fit": {},
    "ev_weighed": {},
    "length_line": {},
    "neighbours": {"ratios": [0.5, 1.0]},
    "oracle_on_grid": {"ratios": [0.5, 1.0]},
    "oracle_on_line": {},
    "length_head": {"beam": 2},
    "daedal": {"ratios": 1.0, "cap": 16},
    "eos_probe": {"ratios": [0.5, 1.0]},
    "partial_unmask": {},
}


def reading(*entropies):
    return ProbeResult((0,) * len(entropies), entropies, (-1.0,) * len(entropies), (-9.0,) * len(entropies))


def flat(length, entropy=1.0, confidence=0.5):
    """The same entropy and the same largest probability in each slot."""
    return ProbeResult((0,) * length, (entropy,) * length, (math.log(confidence),) * length, (-9.0,) * length)


def choose_canvases(length_method, sentences, probe):
    """The canvas row of each sentence; ``probe`` reads (sentence index, slots), all sentences of a round together."""
    works = {n: choosing(length_method, one, functools.partial(asking, n)) for n, one in enumerate(sentences)}
    rows, requests, results = {}, dict.fromkeys(works), dict.fromkeys(works)
    while requests:
        requests = {}
        for place, sent in results.items():
            try:
                requests[place] = works[place].send(sent)
            except StopIteration as done:
                rows[place], _ = done.value
        readings = iter(probe(list(itertools.chain(*requests.values()))) if requests else ())
        results = {place: list(itertools.islice(readings, len(pairs))) for place, pairs in requests.items()}
    return [rows[place] for place in works]


def asking(place, length):
    return place, length


def search(length_method, source_tokens, entropy=lambda length: 1.0, confidence=lambda length: 0.5, room=None):
    """The row of one sentence, and the probed lengths round by round; a canvas says what its length does."""
    rounds = []

    def probe(lengths):
        rounds.append([length for _, length in lengths])
        return [flat(length, entropy(length), confidence(length)) for length in rounds[-1]]

    (row,) = choose_canvases(length_method, [Sentence(source_tokens, room=room)], probe)
    return row, rounds
