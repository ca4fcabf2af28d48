import pytest
from readings import SETTINGS, STATISTICS, choose_canvases, flat, reading

from entropy_valley.lengths import LENGTH_METHODS, Sentence, make_method
from entropy_valley.lengths.base import Example
from entropy_valley.translation.sentences import Sentences


class Words:
    """A prompt whose tokens are words."""

    def tokens(self, text):
        return text.split()

    encode = tokens


class Closed(dict):
    """A row whose target must not be looked at."""

    def __getitem__(self, key):
        assert key != "target"
        return super().__getitem__(key)


ROWS = [Closed(id="a", source="one two three four", target="x y"), Closed(id="b", source="one", target="x")]
PREDICTED = [{5: -0.25, 4: -2.0}, {2: -0.125, 3: -3.0}]  # by a length head, from prompts
SEEING = {"oracle", "oracle_on_grid", "oracle_on_line"}


def probe(canvases):
    """All-mask canvases whose mean entropy is the distance from 4 slots."""
    return [flat(length, float(abs(length - 4))) for _, length in canvases]


@pytest.mark.parametrize("method", [name for name in LENGTH_METHODS if name not in SEEING])
def test_no_selector_but_oracle_is_given_the_reference(method):
    """Nothing reads the target on the way to a length method, and all that it is handed has no place for it."""
    length_method = make_method(method, SETTINGS[method], STATISTICS)
    if length_method.learns:
        probes = {n: reading(*range(n)) for n in (3, 4, 5)}
        length_method, _ = length_method.learn([Example(Sentence(4), probes, 4)])
    predicted = PREDICTED if length_method.uses_length_head else [None, None]
    sentences = Sentences("test", ROWS, Words(), 128).seen_by(length_method, predicted)
    assert [one.reference_tokens for one in sentences] == [None, None]
    assert [(one.source_tokens, one.predicted, one.source) for one in sentences] == [
        (4, predicted[0], "one two three four"),
        (1, predicted[1], "one"),
    ]
    assert all(row["length"] > 0 for row in choose_canvases(length_method, sentences, probe))


def test_the_others_are_as_near_to_the_reference_as_they_may():
    """|x| = 16, the line at 10 slots: the reference's length, beside it, and the nearest candidates."""
    chosen = {
        name: choose_canvases(make_method("x", {"method": kind, **settings}, STATISTICS), [Sentence(16, 12)], None)[0]
        for name, kind, settings in [
            ("at", "oracle", {}),
            ("short", "oracle", {"offset": -2}),
            ("long", "oracle", {"offset": 2}),
            ("grid", "oracle_on_grid", {"ratios": [0.5, 0.7, 1.0]}),
            ("line", "oracle_on_line", {"candidates": 5}),
        ]
    }
    lengths = {name: row["length"] for name, row in chosen.items()}
    assert lengths == {"at": 13, "short": 11, "long": 15, "grid": 12, "line": 12}
    assert {row["calls"] for row in chosen.values()} == {0}
    assert make_method("x", {"method": "oracle", "offset": -2}).choose(Sentence(4, 1), {}).length == 2


def test_every_selector_of_ours_is_tried_here():
    assert SETTINGS.keys() == LENGTH_METHODS.keys()
