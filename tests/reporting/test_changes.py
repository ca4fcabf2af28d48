"""Params that differ, in words."""

from __future__ import annotations

from types import SimpleNamespace

from entropy_valley.differences import Difference
from entropy_valley.reporting import changes


def test_an_edited_class_and_lists_of_many_things_are_said_in_a_few_words():
    some = SimpleNamespace(length_methods=None)
    rows = [{"backbone": name, "path": "x" * 40} for name in "abc"]
    found = [
        Difference("selector.selector", "my.lengths:Mine@0a1b", "my.lengths:Mine@2c3d"),
        Difference("selector.selector", "lengths:Mine@0a1b", "lengths:Other@0a1b"),
        Difference("cells", ["a", "b"], ["b", "c", "d"]),
        Difference("adapters", rows, rows[:2]),
        *(Difference(f"grids.en-zh.{name}", [0.5], [0.6]) for name in ("ev", "cal")),
    ]
    assert changes.reasons(some, "table", {}, found, 9).split("; ") == [
        "my/lengths.py changed",
        "selector: lengths:Mine@0a1b → lengths:Other@0a1b",
        "2 cells more, 1 cell fewer",
        "adapters: 1 fewer",
        "ratios of en-zh: 0.5 → 0.6",
    ]
    assert changes.reasons(some, "table", {}, found, 1) == "my/lengths.py changed; … (5 params)"
