from __future__ import annotations

from entropy_valley.results import ABSENT, differences


def test_keys_are_paths_and_lists_are_compared_whole():
    before = {"a": {"b": [1, 2], "c": 1}, "d": 1}
    after = {"a": {"b": [1, 3], "c": 1}, "e": None}
    assert list(differences(before, after)) == [("a.b", [1, 2], [1, 3]), ("d", 1, ABSENT), ("e", ABSENT, None)]


def test_long_values_are_cut_to_where_they_differ():
    before, after = ([{"backbone": name, "path": "x" * 40} for name in names] for names in ("aab", "aac"))
    (line,) = map(str, differences({"rows": before}, {"rows": after}))
    value = '…"backbone":"{}","path":"' + "x" * 37 + "…"
    assert line == f"rows: {value.format('b')} → {value.format('c')}"
