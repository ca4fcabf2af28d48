"""What an unknown name may mean, and how a message says so."""

from __future__ import annotations

import pytest

from entropy_valley import errors

MANY = [f"other_{number}" for number in range(30)]
SIX, REST = MANY[:6], "… and 24 more"


@pytest.mark.parametrize(
    ("name", "names", "message"),
    [
        ("mian", ["main", "cost"], "no; did you mean main? there is main, cost"),
        ("xyz", ["main", "cost"], "no; there is main, cost"),
        ("xyz", [], "no; there is none"),
        (
            "mian",
            ["main", "mainz", *MANY],
            f"no; did you mean main or mainz? there is main, mainz, {', '.join(SIX)}, {REST}",
        ),
        ("xyz", MANY, f"no; there is {', '.join(MANY[:8])}, … and 22 more"),
        (7, ["main"], "no; there is main"),
    ],
)
def test_an_unknown_name(name, names, message):
    assert errors.unknown(name, "no", names) == message


def test_a_question():
    assert errors.question("mian", ["mains", "main", "cost", "mainz"]) == "Did you mean main or mainz or mains? "
    assert errors.question("xyz", ["main"]) == ""
