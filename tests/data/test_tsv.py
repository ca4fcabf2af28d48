from __future__ import annotations

import pytest

from entropy_valley.data import sources
from entropy_valley.errors import InputError


@pytest.fixture
def tsv(tmp_path):
    def make(content, columns):
        path = tmp_path / "pairs.tsv"
        path.write_text(content, encoding="utf-8")
        return sources.make({"name": "tsv", "file": str(path), "columns": columns})

    return make


def pairs(source, direction="de-en"):
    return list(source.pairs(direction, "train", 1))


def test_columns_by_number_and_in_both_directions(tsv):
    source = tsv('Hallo\t5\t Hello \n"Ja"\t6\tYes\n', {"de": 1, "en": 3})
    assert pairs(source) == [("Hallo", "Hello"), ('"Ja"', "Yes")]
    assert pairs(source, "en-de") == [("Hello", "Hallo"), ("Yes", '"Ja"')]


def test_columns_by_name(tsv):
    assert pairs(tsv("id\tde\ten\n1\tHallo\tHello\n", {"de": "de", "en": "en"})) == [("Hallo", "Hello")]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("Hallo\tHello\nJa\n", {"de": 1, "en": 2}, r"pairs.tsv:2: no text in column 2"),
        ("Hallo\t \n", {"de": 1, "en": 2}, r"pairs.tsv:1: no text in column 2"),
        ("de\ten\n", {"de": "de", "en": "english"}, r"pairs.tsv:1: no column 'english'. It has de, en"),
        ("Hallo\tHello\n", {"de": 1}, r"has no entry of en under `columns`"),
    ],
)
def test_what_is_not_there_is_named(tsv, content, columns, message):
    with pytest.raises(InputError, match=message):
        pairs(tsv(content, columns))


def test_a_direction_without_a_column_is_refused_before_any_job(tsv):
    assert "no entry of fr" in tsv("a\tb\n", {"de": 1, "en": 2}).refused("de-fr", "train")
