"""`entropy-valley show`: the numbers of a table, on terminals of any width."""

import re

import pandas as pd
import pytest
from test_hostile_reports import MARKUP

from entropy_valley.errors import InputError
from entropy_valley.experiment.tables import terminal
from entropy_valley.experiment.tables.render import write_csv

ROWS = [("Oracle length", 32, 0.892412345, 88.6, 0.01), ("Entropy-Valley", 32, 0.841312345, 77.41, 20300.0)]
COLUMNS = ["method", "steps", "comet", "bleu", "closure"]


@pytest.mark.parametrize(("width", "parts"), [(160, 1), (32, 2), (22, 3)])
@pytest.mark.parametrize("named", ["table.csv", "table.md"])
def test_a_wide_table_is_shown_in_parts_with_whole_numbers(tmp_path, capsys, monkeypatch, width, parts, named):
    write_csv(tmp_path / "table.csv", pd.DataFrame(ROWS, columns=COLUMNS).assign(spread=None))
    monkeypatch.setattr(terminal, "LOG", width)
    terminal.show(tmp_path / named)
    text = capsys.readouterr().out
    assert text.count("Entropy-Valley") == text.count("method") == parts and "spread" not in text
    for number in ("steps: 32\n", "0.8924", "77.41", "0.01", "20300"):  # what all rows have stands once
        assert text.count(number) == 1


def test_texts_stay_text_on_the_terminal(tmp_path, capsys):
    write_csv(tmp_path / "table.csv", pd.DataFrame({"[/x] \x1b[2J": MARKUP, "n": range(len(MARKUP))}))
    terminal.show(tmp_path / "table.csv")
    said = capsys.readouterr().out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert "[/x]" in said and all(text in said for text in MARKUP if text.isprintable() and text[0] not in "=+-@")


def test_what_is_no_table_is_named(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2,3\n1,2\n1,2,3,4\n")
    with pytest.raises(InputError, match=r"x\.csv: is no table of results\. Name a file"):
        terminal.show(tmp_path / "x.csv")
